/* SPDX-License-Identifier: BSD-3-Clause */
/* The worked examples of the operators, written by make_examples.py. */
/* clang-format off */
static const uint16_t quantize_device_bfloat16_x[] = {0x3F76, 0x3FAA, 0xBF1E, 0x3F0C, 0xBF97, 0xBF96, 0xBF3E, 0x3F79,
    0xBF68, 0xBDA7, 0xBF4E, 0x3F89};
static const uint16_t quantize_device_bfloat16_scales[] = {0x3DCD, 0x3DCD, 0x3DCD, 0x3DCD, 0x3DCD, 0x3DCD, 0x3DCD,
    0x3DCD, 0x3DCD, 0x3DCD, 0x3DCD, 0x3DCD};
static const int8_t quantize_device_bfloat16_y[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
static const uint32_t quantize_device_float32_x[] = {0xBF47414A, 0xBF860DED, 0xBF8EC8B4, 0x3F9C9518, 0xBF9D119D,
    0xC023EAB3, 0xBE3B2032, 0x40351340, 0x3E42DB62, 0xBFF77660, 0xBEFC432D, 0xBF8851EC, 0xBF64E7AB, 0x3D028912,
    0xBF14D940, 0xBEFD527E, 0x3DC75148, 0xBEC60BF6, 0x3B0FF9DE, 0xBF21E796, 0x3F3745E1, 0xBE3E54B5, 0xBFAB46DC,
    0xBE866A55, 0x3C973D9F, 0x3DFDE3FC, 0xBF681451, 0xBF7E2824, 0xBD352FC2, 0x3F87F972, 0xBDC99956, 0x3FA5A512,
    0x3F8A4DD3, 0xBE30D5A6, 0xBDCB2BFE, 0xBF1D421C, 0x3FAF1412, 0xBE8C0592, 0xBED3BB84, 0xBF7245F6, 0x3EDB1855,
    0x3F4DFB94, 0x3F6F9336, 0x3F23150E, 0x3F903E42, 0xBFC43611, 0x3F15F1BF, 0xBFB2C3CA, 0x3EB7B741, 0x3F5ECB53,
    0xBFA8A71E, 0x3F947E28, 0xBEBD5BAB, 0x3F3C8605, 0xBF89A9FC, 0x3F2A62CC, 0x40475A86, 0xBF30110A, 0xBF8BAFB8,
    0x3EE63498, 0xBFA01062, 0x3FC61134, 0xBD983B60, 0xBFD535A8, 0x3FA9EB85, 0x3D714FCE, 0x3F57C654, 0xBFDAFEC5,
    0x3E3AF102, 0x3EA8A32F, 0x401F3333, 0x3FB23055};
static const uint32_t quantize_device_float32_scales[] = {0x40400000, 0x40400000, 0x40400000, 0x40400000, 0x40400000,
    0x40400000, 0x40400000, 0x40400000, 0x40400000, 0x40400000, 0x40400000, 0x40400000};
static const int8_t quantize_device_float32_y[] = {-2, -3, -3, 4, -4, -8, -1, 8, 1, -6, -1, -3, -3, 0, -2, -1, 0, -1,
    0, -2, 2, -1, -4, -1, 0, 0, -3, -3, 0, 3, 0, 4, 3, -1, 0, -2, 4, -1, -1, -3, 1, 2, 3, 2, 3, -5, 2, -4, 1, 3, -4, 3,
    -1, 2, -3, 2, 9, -2, -3, 1, -4, 5, 0, -5, 4, 0, 3, -5, 1, 1, 7, 4};
static const uint32_t quantize_fortran_order_x[] = {0xBF47414A, 0x3FAF1412, 0xBF64E7AB, 0x3EB7B741, 0x3C973D9F,
    0xBFA01062, 0xBF860DED, 0xBE8C0592, 0x3D028912, 0x3F5ECB53, 0x3DFDE3FC, 0x3FC61134, 0xBF8EC8B4, 0xBED3BB84,
    0xBF14D940, 0xBFA8A71E, 0xBF681451, 0xBD983B60, 0x3F9C9518, 0xBF7245F6, 0xBEFD527E, 0x3F947E28, 0xBF7E2824,
    0xBFD535A8, 0xBF9D119D, 0x3EDB1855, 0x3DC75148, 0xBEBD5BAB, 0xBD352FC2, 0x3FA9EB85, 0xC023EAB3, 0x3F4DFB94,
    0xBEC60BF6, 0x3F3C8605, 0x3F87F972, 0x3D714FCE, 0xBE3B2032, 0x3F6F9336, 0x3B0FF9DE, 0xBF89A9FC, 0xBDC99956,
    0x3F57C654, 0x40351340, 0x3F23150E, 0xBF21E796, 0x3F2A62CC, 0x3FA5A512, 0xBFDAFEC5, 0x3E42DB62, 0x3F903E42,
    0x3F3745E1, 0x40475A86, 0x3F8A4DD3, 0x3E3AF102, 0xBFF77660, 0xBFC43611, 0xBE3E54B5, 0xBF30110A, 0xBE30D5A6,
    0x3EA8A32F, 0xBEFC432D, 0x3F15F1BF, 0xBFAB46DC, 0xBF8BAFB8, 0xBDCB2BFE, 0x401F3333, 0xBF8851EC, 0xBFB2C3CA,
    0xBE866A55, 0x3EE63498, 0xBF1D421C, 0x3FB23055};
static const int8_t quantize_fortran_order_y[] = {-2, 4, -3, 1, 0, -4, -3, -1, 0, 3, 0, 5, -3, -1, -2, -4, -3, 0, 4,
    -3, -1, 3, -3, -5, -4, 1, 0, -1, 0, 4, -8, 2, -1, 2, 3, 0, -1, 3, 0, -3, 0, 3, 8, 2, -2, 2, 4, -5, 1, 3, 2, 9, 3,
    1, -6, -5, -1, -2, -1, 1, -1, 2, -4, -3, 0, 7, -3, -4, -1, 1, -2, 4};
static const uint32_t quantize_to_int32_x[] = {0x3EAD288D, 0xBDBC3611, 0x3F41A36E, 0x3CBFB15B, 0x40468DB9, 0x3F89BDA5,
    0x3ED8793E, 0x3FBB2618};
static const uint32_t quantize_to_int32_scales[] = {0x3F800000, 0xC0400000};
static const int32_t quantize_to_int32_zero_points[] = {2, 10};
static const int32_t quantize_to_int32_y[] = {2, 10, 3, 10, 5, 10, 2, 10};
static const uint32_t quantize_halves_to_int8_x[] = {0x3F000000, 0x3FC00000, 0x40200000, 0xBF000000, 0xBFC00000,
    0xC0200000, 0x42FF0000, 0x43008000, 0xC3008000, 0x4E6E6B28, 0xCE6E6B28, 0x7F800000, 0xFF800000, 0x7FC00000};
static const uint32_t quantize_halves_to_int8_scales[] = {0x3F800000};
static const int8_t quantize_halves_to_int8_y[] = {0, 2, 2, 0, -2, -2, 127, 127, -128, 127, -128, 127, -128, 0};
static const int32_t quantize_halves_to_int32_y[] = {0, 2, 2, 0, -2, -2, 128, 128, -128, 1000000000, -1000000000,
    2147483647, -2147483648, 0};
static const uint8_t quantize_halves_to_uint8_zero_points[] = {1};
static const uint8_t quantize_halves_to_uint8_y[] = {2, 2, 4, 0, 0, 0, 128, 130, 0, 255, 0, 255, 0, 0};
static const uint32_t quantize_division_by_zero_x[] = {0xBF800000, 0x0, 0x40000000};
static const uint32_t quantize_division_by_zero_scales[] = {0x0};
static const int8_t quantize_division_by_zero_y[] = {-128, 0, 127};
static const uint32_t quantize_rows_multiply_x[] = {0xBFC00000, 0xBFA00000, 0xBF800000, 0xBF400000, 0xBF000000,
    0xBE800000, 0x0, 0x3E800000, 0x3F000000, 0x3F400000, 0x3F800000, 0x3FA00000};
static const uint32_t quantize_rows_multiply_scales[] = {0x3F800000, 0x40000000, 0x40800000};
static const uint32_t quantize_rows_multiply_zero_points[] = {0x3F000000, 0x0, 0xBF000000};
static const int8_t quantize_rows_multiply_y[] = {-1, -1, 0, 0, -1, 0, 0, 0, 2, 2, 4, 4};
static const uint32_t quantize_rows_divide_scales[] = {0x3E800000, 0x3F000000, 0xBDCCCCCD};
static const uint8_t quantize_rows_divide_zero_points[] = {3, 0, 250};
static const uint8_t quantize_rows_divide_y[] = {0, 0, 0, 0, 0, 0, 0, 0, 245, 242, 240, 238};
static const uint16_t quantize_to_quint4x2_x[] = {0x3800, 0x3E00, 0x4100, 0xC780, 0x5640, 0xD640, 0x42FB, 0xC305};
static const uint32_t quantize_to_quint4x2_y[] = {0xC3878220};
static const uint16_t quantize_to_quint4x2_negative_x[] = {0xC800, 0xC700, 0xC600, 0xC500, 0xC400, 0xC200, 0xC000,
    0xBC00};
static const uint32_t quantize_to_quint4x2_negative_y[] = {0xFEDCBA98};
static const uint16_t quantize_to_quint4x2_positive_x[] = {0x0, 0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600,
    0x4700};
static const uint32_t quantize_to_quint4x2_positive_y[] = {0x76543210};
static const uint16_t group_quant_device_x[] = {0x3C03, 0xBCF3, 0x3C0B, 0xB44A, 0x38A2, 0x2F0C, 0x3C06, 0xBBBA, 0xBF0E,
    0x3F09, 0xBD47, 0x3662, 0x3D4E, 0x37C4, 0x3FD2, 0x3BC2, 0xBB04, 0xBF88, 0x405B, 0x9D1F, 0x378E, 0x387C, 0x3A9D,
    0xBBD9};
static const uint32_t group_quant_device_scale[] = {0xBE8AC083, 0xBF702752, 0x3E91EB85, 0xBF8FBE77, 0x3F058E22,
    0xBF392A30, 0xBE3126E9, 0xBDFEF9DB, 0xBFC58ADB, 0xBF69B3D0, 0xC00D6873, 0x3FDE594B, 0xBF5346DC, 0x3ECB6AE8,
    0x3E126E98, 0x3EC6E979};
static const int32_t group_quant_device_group_index[] = {1, 4, 6, 6};
static const uint32_t group_quant_device_offset[] = {0xBF9538EF};
static const int8_t group_quant_device_y[] = {-1, 0, -1, -1, -1, -1, -1, -1, -2, -2, -1, -1, 0, -2, -2, -1, 0, 1, -6,
    -1, -2, -2, -3, -3};
static const uint32_t trans_quant_param_device_scale[] = {0x3F85E000, 0x3E326000, 0x3FB60000};
static const uint32_t trans_quant_param_device_offset[] = {0x3F800000, 0xC0000000, 0x0};
static const int64_t trans_quant_param_device_y[] = {0x40203F85E000, 0x7FC03E326000, 0x40003FB60000};
static const uint32_t trans_quant_param_truncated_scale[] = {0x3F800000, 0x3DCCCCCD, 0xC0200000, 0x3A83126F,
    0x7F61B1E6};
static const uint32_t trans_quant_param_truncated_offset[] = {0x0, 0x3FC00000, 0xC0200000, 0xC3960000, 0x4E6E6B28};
static const int64_t trans_quant_param_truncated_y[] = {0x40003F800000, 0x40403DCCC000, 0x7FC0C0200000, 0x60003A830000,
    0x5FE07F61A000};
static const uint64_t trans_quant_param_rounded_y[] = {0x40003F800000, 0x40403DCCC000, 0x7FC0C0200000, 0x60003A832000,
    0x5FE07F61C000};
static const uint32_t trans_quant_param_broadcast_offset[] = {0x3F000000, 0x3FC00000, 0xBF800000, 0x43960000,
    0xC3960000};
static const int64_t trans_quant_param_broadcast_y[] = {0x40003F800000, 0x40403F800000, 0x7FE03F800000, 0x5FE03F800000,
    0x60003F800000};
static const uint32_t trans_quant_param_edges_mode_0_scale[] = {0x3F800FFF, 0x3F801000, 0x3F801001, 0x3F803000,
    0x7F7FFFFF, 0x1, 0x807FFFFF, 0x7F800001, 0x7FC00000, 0xFF800000};
static const int64_t trans_quant_param_edges_mode_0_y[] = {0x40003F800000, 0x40003F800000, 0x40003F800000,
    0x40003F802000, 0x40007F7FE000, 0x400000000000, 0x4000807FE000, 0x40007F800000, 0x40007FC00000, 0x4000FF800000};
static const int64_t trans_quant_param_edges_mode_1_y[] = {0x40003F800000, 0x40003F800000, 0x40003F802000,
    0x40003F804000, 0x40007F800000, 0x400000000000, 0x400080000000, 0x40007F800000, 0x40007FC00000, 0x4000FF800000};
static const uint16_t dynamic_to_int8_x[] = {0x3800, 0xBD00, 0x4200, 0x0, 0x4180, 0xB600, 0x3E00, 0xC000, 0x3C00,
    0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x2E66, 0x3266,
    0x34CD, 0x3666, 0x3800, 0x38CD, 0x399A, 0x3A66};
static const int8_t dynamic_to_int8_y[] = {0, -90, 127, -26, 114, -45, 50, -128, 0, 0, 0, 0, 0, 0, 0, 0, 127, 127, 127,
    127, 127, 127, 127, 127, -128, -92, -55, -19, 18, 54, 91, 127};
static const uint32_t dynamic_to_int8_scale[] = {0x3CA0A0A1, 0x2B8CBCCC, 0x2B8CBCCC, 0x3B33DBDC};
static const uint32_t dynamic_to_int8_offset[] = {0xC1D00000, 0xD368D4A5, 0x42FE0000, 0xC3246DB6};
static const uint16_t dynamic_fortran_order_x[] = {0x3800, 0x3C00, 0x0, 0x2E66, 0xBD00, 0x3C00, 0x0, 0x3266, 0x4200,
    0x3C00, 0x0, 0x34CD, 0x0, 0x3C00, 0x0, 0x3666, 0x4180, 0x3C00, 0x0, 0x3800, 0xB600, 0x3C00, 0x0, 0x38CD, 0x3E00,
    0x3C00, 0x0, 0x399A, 0xC000, 0x3C00, 0x0, 0x3A66};
static const uint32_t dynamic_to_quint4x2_y[] = {0x82D6E7A0, 0x0, 0x77777777, 0x7531ECA8};
static const uint32_t dynamic_to_quint4x2_scale[] = {0x3EAAAAAB, 0x2B8CBCCC, 0x2B8CBCCC, 0x3D3F199A};
static const uint32_t dynamic_to_quint4x2_offset[] = {0xC0000000, 0xD368D4A5, 0x40E00000, 0xC1224924};
static const uint16_t dynamic_bfloat16_x[] = {0x3DCD, 0x3E4D, 0x3E9A, 0x3ECD, 0x3F00, 0x3F1A, 0x3F33, 0x3F4D};
static const int8_t dynamic_bfloat16_y[] = {-128, -92, -55, -19, 18, 54, 90, 127};
static const uint32_t dynamic_bfloat16_scale[] = {0x3B341414};
static const uint32_t dynamic_bfloat16_offset[] = {0xC3246DB6};
static const uint16_t dynamic_smooth_scales_smooth_scales[] = {0x3C00, 0x4000, 0x3800, 0xBC00, 0x4400, 0x3C00, 0x3C00,
    0x3400};
static const int8_t dynamic_smooth_scales_y[] = {-71, -128, -52, -81, 127, -88, -52, -90, -26, 25, -52, -128, 127, -26,
    -26, -64, 127, 127, 127, 127, 127, 127, 127, 127, -75, -43, -70, -128, 127, -22, -11, -64};
static const uint32_t dynamic_smooth_scales_scale[] = {0x3D58D8D9, 0x3CA0A0A1, 0x2B8CBCCC, 0x3C1A3232};
static const uint32_t dynamic_smooth_scales_offset[] = {0xC2A18E38, 0xC29A0000, 0x42FE0000, 0xC2AB046E};
static const uint16_t dynamic_groups_smooth_scales[] = {0x3C00, 0x4000, 0x3800, 0xBC00, 0x4400, 0x3C00, 0x3C00, 0x3400,
    0x4000, 0x4000, 0x4000, 0x4000, 0x4000, 0x4000, 0x4000, 0x4000, 0x3400, 0x3C00, 0x3C00, 0x4400, 0xBC00, 0x3800,
    0x4000, 0x3C00};
static const int64_t dynamic_groups_group_index[] = {1, 1, 4};
static const int8_t dynamic_groups_y[] = {-71, -128, -52, -81, 127, -88, -52, -90, -64, -26, -26, 127, -128, -52, 25,
    -26, 127, 127, 127, 127, 127, 127, 127, 127, -64, -43, -31, 127, -128, -31, 103, 30};
static const uint32_t dynamic_groups_scale[] = {0x3D58D8D9, 0x3CA0A0A1, 0x2B8CBCCC, 0x3C06E6E7};
static const uint32_t dynamic_groups_offset[] = {0xC2A18E38, 0xC29A0000, 0x42FE0000, 0xC2868C80};
static const int8_t dynamic_per_tensor_y[] = {0, -90, 127, -26, 114, -45, 50, -128, 25, 25, 25, 25, 25, 25, 25, 25,
    -26, -26, -26, -26, -26, -26, -26, -26, -21, -16, -11, -6, 0, 5, 10, 15};
static const uint32_t dynamic_per_tensor_scale[] = {0x3CA0A0A1};
static const uint32_t dynamic_per_tensor_offset[] = {0xC1D00000};
static const uint16_t dynamic_scale_of_one_x[] = {0x0, 0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x5BF8};
static const int8_t dynamic_scale_of_one_y[] = {-128, -127, -126, -125, -124, -123, -122, 127};
static const uint32_t dynamic_scale_of_one_offset[] = {0xC3000000};
static const uint16_t dynamic_constant_1_x[] = {0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00};
static const int8_t dynamic_constant_1_y[] = {0, 0, 0, 0, 0, 0, 0, 0};
static const uint32_t dynamic_constant_1_scale[] = {0x2B8CBCCC};
static const uint32_t dynamic_constant_1_offset[] = {0xD368D4A5};
static const uint16_t dynamic_constant_65504_x[] = {0x7BFF, 0x7BFF, 0x7BFF, 0x7BFF, 0x7BFF, 0x7BFF, 0x7BFF, 0x7BFF};
static const int8_t dynamic_constant_65504_y[] = {-128, -128, -128, -128, -128, -128, -128, -128};
static const uint16_t dynamic_constant_subnormal_x[] = {0x2, 0x2, 0x2, 0x2, 0x2, 0x2, 0x2, 0x2};
static const int8_t dynamic_constant_subnormal_y[] = {127, 127, 127, 127, 127, 127, 127, 127};
static const uint32_t dynamic_constant_subnormal_offset[] = {0xC7E89525};
static const uint16_t dynamic_infinities_and_nan_x[] = {0x3C00, 0x7C00, 0xC000, 0x4200, 0x0, 0x3800, 0x4400, 0xC500,
    0x3C00, 0xFC00, 0xC000, 0x4200, 0x0, 0x3800, 0xFC00, 0xC500, 0x3C00, 0x7E00, 0xC000, 0x4200, 0x0, 0x3800, 0x4400,
    0xC500};
static const int8_t dynamic_infinities_and_nan_y[] = {0, 0, 0, 0, 0, 0, 0, 0, 127, 0, 127, 127, 127, 127, 0, 127, 0, 0,
    0, 0, 0, 0, 0, 0};
static const uint32_t dynamic_infinities_and_nan_scale[] = {0x7F800000, 0x7F800000, 0x2B8CBCCC};
static const uint32_t dynamic_infinities_and_nan_offset[] = {0x7FC00000, 0x42FE0000, 0x7FC00000};
static const uint16_t dynamic_quant_device_x[] = {0x39CF, 0x35F6, 0x3B4D, 0x3B38, 0x3BFE, 0x3018, 0x3AE7, 0x38FE,
    0x3B39};
static const int8_t dynamic_quant_device_y[] = {101, 52, 127, 115, 127, 16, 121, 88, 127};
static const uint32_t dynamic_quant_device_scale[] = {0x3BEB76EE, 0x3C00E1C3, 0x3BE8F1E4};
static const uint32_t dynamic_quant_device_inverse_scale[] = {0x3BEB76ED, 0x3C00E1C3, 0x3BE8F1E3};
static const int8_t dynamic_quant_to_int8_product_y[] = {21, -53, 127, 0, 116, -16, 64, -85, 127, 127, 127, 127, 127,
    127, 127, 127, 0, 0, 0, 0, 0, 0, 0, 0, 16, 32, 48, 64, 79, 95, 111, 127};
static const uint32_t dynamic_quant_to_int8_product_scale[] = {0x3CC18306, 0x3C010204, 0x0, 0x3BCE5CB9};
static const uint32_t dynamic_quant_to_quint4x2_product_y[] = {0xB4F607D1, 0x77777777, 0x0, 0x76544321};
static const uint32_t dynamic_quant_to_quint4x2_product_scale[] = {0x3EDB6DB8, 0x3E124925, 0x0, 0x3DEA0001};
static const uint32_t dynamic_quant_to_quint4x2_inverse_scale[] = {0x3EDB6DB7, 0x3E124925, 0x0, 0x3DE9FFFF};
static const int8_t dynamic_quant_smooth_scales_y[] = {6, -29, 17, 0, 127, -4, 17, -6, 32, 64, 16, -32, 127, 32, 32, 8,
    0, 0, 0, 0, 0, 0, 0, 0, 6, 25, 10, -25, 127, 38, 44, 13};
static const uint32_t dynamic_quant_smooth_scales_scale[] = {0x3DB162C6, 0x3D010204, 0x0, 0x3C810204};
static const int8_t dynamic_quant_groups_y[] = {6, -29, 17, 0, 127, -4, 17, -6, 8, 32, 32, 127, -32, 16, 64, 32, 0, 0,
    0, 0, 0, 0, 0, 0, 2, 16, 24, 127, -40, 24, 111, 64};
static const uint32_t dynamic_quant_groups_scale[] = {0x3DB162C6, 0x3D010204, 0x0, 0x3C4E5CB9};
static const int8_t dynamic_quant_per_tensor_y[] = {21, -53, 127, 0, 116, -16, 64, -85, 42, 42, 42, 42, 42, 42, 42, 42,
    0, 0, 0, 0, 0, 0, 0, 0, 4, 8, 13, 17, 21, 25, 30, 34};
static const uint32_t dynamic_quant_per_tensor_scale[] = {0x3CC18306};
static const uint16_t dynamic_quant_special_rows_product_x[] = {0x6D, 0x80DA, 0x0, 0x208, 0x36, 0x8208, 0x0, 0x1,
    0x3F80, 0xFF80, 0x4000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x7FC0, 0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0, 0x40C0, 0x40E0};
static const int8_t dynamic_quant_special_rows_product_y[] = {127, -128, 0, 127, 127, -128, 0, 127, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
static const uint32_t dynamic_quant_special_rows_product_scale[] = {0x89122, 0x7F800000, 0x7FC00000};
static const uint32_t dynamic_quant_special_rows_inverse_scale[] = {0x0, 0x7F800000, 0x7FC00000};
static const int8_t dynamic_block_quant_of_4_y[] = {21, -53, 127, 0, 127, -17, 69, -92, 127, 127, 127, 127, 127, 127,
    127, 127, 0, 0, 0, 0, 0, 0, 0, 0, 32, 64, 95, 127, 79, 95, 111, 127};
static const uint32_t dynamic_block_quant_of_4_scale[] = {0x3CC18306, 0x3CB162C6, 0x3C010204, 0x3C010204, 0x0, 0x0,
    0x3B4E5CB9, 0x3BCE5CB9};
static const int8_t dynamic_block_quant_least_scale_y[] = {25, -62, 127, 0, 127, -19, 75, -100, 127, 127, 127, 127,
    127, 127, 127, 127, 0, 0, 0, 0, 0, 0, 0, 0, 16, 32, 48, 64, 79, 95, 111, 127};
static const uint32_t dynamic_block_quant_least_scale_scale[] = {0x3CA3D70A, 0x3C010204, 0x0, 0x3BCE5CB9};
static const uint16_t dynamic_block_quant_special_blocks_x[] = {0x7F80, 0x3F80, 0xC000, 0x0, 0x7FC0, 0x3F80, 0x4000,
    0x4040};
static const uint32_t dynamic_block_quant_special_blocks_scale[] = {0x7F800000, 0x7FC00000};
static const int8_t dynamic_block_quant_special_blocks_least_scale_y[] = {127, 50, -100, 0, 0, 0, 0, 0};
static const uint32_t dynamic_block_quant_special_blocks_least_scale_scale[] = {0x3CA3D70A, 0x7FC00000};
static const uint16_t dynamic_block_quant_to_quint4x2_and_backwards_x[] = {0x3800, 0xBD00, 0x4200, 0x0, 0x4180, 0xB600,
    0x3E00, 0xC000, 0xC000, 0x3E00, 0xB600, 0x4180, 0x0, 0x4200, 0xBD00, 0x3800, 0x3C00, 0x3C00, 0x3C00, 0x3C00,
    0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x0, 0x0, 0x0, 0x0,
    0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x2E66, 0x3266, 0x34CD, 0x3666, 0x3800, 0x38CD, 0x399A,
    0x3A66, 0x3A66, 0x399A, 0x38CD, 0x3800, 0x3666, 0x34CD, 0x3266, 0x2E66};
static const uint32_t dynamic_block_quant_to_quint4x2_and_backwards_y[] = {0xB4F607D1, 0x1D706F4B, 0x77777777,
    0x77777777, 0x0, 0x0, 0x76544321, 0x12344567};
static const uint32_t dynamic_block_quant_to_quint4x2_and_backwards_scale[] = {0x3EDB6DB8, 0x3EDB6DB8, 0x3E124925,
    0x3E124925, 0x0, 0x0, 0x3DEA0001, 0x3DEA0001};
static const int8_t anti_quant_offset_before_the_product_x[] = {1, 2, 3, 4};
static const uint32_t anti_quant_offset_before_the_product_scale[] = {0x40000000};
static const uint32_t anti_quant_offset_before_the_product_y[] = {0x40C00000, 0x41000000, 0x41200000, 0x41400000};
static const int8_t anti_quant_to_float16_x[] = {-128, -1, 0, 1, 2, 100, 126, 127};
static const uint32_t anti_quant_to_float16_scale[] = {0x3DCCCCCD};
static const uint32_t anti_quant_to_float16_offset[] = {0x3F000000};
static const uint16_t anti_quant_to_float16_y[] = {0xCA60, 0xAA66, 0x2A66, 0x30CD, 0x3400, 0x4906, 0x4A53, 0x4A60};
static const uint16_t anti_quant_to_bfloat16_y[] = {0xC14C, 0xBD4D, 0x3D4D, 0x3E1A, 0x3E80, 0x4121, 0x414A, 0x414C};
static const uint32_t anti_quant_quint4x2_x[] = {0x7654321F};
static const uint32_t anti_quant_quint4x2_scale[] = {0x3F800000, 0x40000000, 0x40400000, 0x40800000, 0x40A00000,
    0x40C00000, 0x47C35000, 0xC7C35000};
static const uint16_t anti_quant_quint4x2_y[] = {0xBC00, 0x4000, 0x4600, 0x4A00, 0x4D00, 0x4F80, 0x7C00, 0xFC00};
static const int8_t anti_quant_groups_of_rows_x[] = {1, -2, 3, 4, -128, 127, 5, -6};
static const uint32_t anti_quant_groups_of_rows_scale[] = {0x3F000000, 0x3DCCCCCD, 0x40000000, 0xC0400000};
static const uint16_t anti_quant_groups_of_rows_y[] = {0x3800, 0xB266, 0x3E00, 0x3666, 0xDC00, 0xDDF4, 0x4900, 0x4C80};
static const uint32_t anti_quant_groups_of_rows_with_offset_offset[] = {0x0, 0x3F800000, 0xBF800000, 0x3F000000};
static const uint16_t anti_quant_groups_of_rows_with_offset_y[] = {0x3800, 0xAE66, 0x3E00, 0x3800, 0xDC08, 0xDDFA,
    0x4800, 0x4C20};
static const int32_t dequant_to_float16_x[] = {100, -100, 16777217, 2147483647, -1, 0, 123456, -2147483648};
static const uint32_t dequant_to_float16_weight_scale[] = {0x3F000000, 0x3DCCCCCD, 0x3A83126F, 0x3727C5AC};
static const uint16_t dequant_to_float16_y[] = {0x5240, 0xC900, 0x7419, 0x753E, 0xB800, 0x0, 0x57B7, 0xF53E};
static const uint16_t dequant_to_bfloat16_y[] = {0x4248, 0xC120, 0x4683, 0x46A8, 0xBF00, 0x0, 0x42F7, 0xC6A8};
static const uint32_t dequant_activation_scale_activation_scale[] = {0x3E800000, 0x40400000};
static const uint16_t dequant_activation_scale_y[] = {0x4A40, 0xC100, 0x6C19, 0x6D3E, 0xBE00, 0x0, 0x5DC9, 0xFBDD};
static const int32_t dequant_int32_bias_bias[] = {1, -1, 1000, 1};
static const uint16_t dequant_int32_bias_y[] = {0x4A50, 0xC10D, 0x6C19, 0xED3E, 0x0, 0xB4CD, 0x5DD5, 0xFBDD};
static const uint32_t dequant_float32_bias_bias[] = {0x3DCCCCCD, 0x3E4CCCCD, 0x3E99999A, 0x3ECCCCCD};
static const uint16_t dequant_float32_bias_y[] = {0x4A4D, 0xC09A, 0x6C19, 0x6D3E, 0xBD9A, 0x3266, 0x5DCB, 0xFBDD};
static const int64_t requant_to_int8_words[] = {0x40603F000000, 0x7D803DCCC000, 0x4C803A830000, 0x60003727C000};
static const int8_t requant_to_int8_y[] = {53, -30, 127, -1, 3, -20, 127, -128};
static const uint16_t requant_to_float16_y[] = {0x5240, 0xC900, 0x7418, 0x753E, 0xB800, 0x0, 0x57B6, 0xF53E};
static const int32_t requant_two_clamps_x[] = {600, -600, 5, 7};
static const uint64_t requant_two_clamps_words[] = {0x67003F800000, 0x59003F800000, 0x40003F000000, 0x40003F000000};
static const int8_t requant_two_clamps_y[] = {55, -56, 2, 4};
static const int32_t requant_bias_bias[] = {0, 0, 0, -4};
static const int8_t requant_bias_y[] = {55, -56, 2, 2};

static const struct example examples[] = {
    {"quantize device bfloat16", {.op = TEST_QUANTIZE, .axis = -1, .div_mode = false}, {
     {X, NPUQ_BFLOAT16, {12}, quantize_device_bfloat16_x, false},
     {SCALES, NPUQ_BFLOAT16, {12}, quantize_device_bfloat16_scales, false},
     {Y, NPUQ_INT8, {12}, quantize_device_bfloat16_y, false}}},
    {"quantize device float32", {.op = TEST_QUANTIZE, .axis = -1, .div_mode = false}, {
     {X, NPUQ_FLOAT32, {2, 3, 12}, quantize_device_float32_x, false},
     {SCALES, NPUQ_FLOAT32, {12}, quantize_device_float32_scales, false},
     {Y, NPUQ_INT8, {2, 3, 12}, quantize_device_float32_y, false}}},
    {"quantize Fortran order", {.op = TEST_QUANTIZE, .axis = -1, .div_mode = false}, {
     {X, NPUQ_FLOAT32, {2, 3, 12}, quantize_fortran_order_x, true},
     {SCALES, NPUQ_FLOAT32, {12}, quantize_device_float32_scales, false},
     {Y, NPUQ_INT8, {2, 3, 12}, quantize_fortran_order_y, true}}},
    {"quantize to int32", {.op = TEST_QUANTIZE, .axis = 1, .div_mode = true}, {
     {X, NPUQ_FLOAT32, {4, 2}, quantize_to_int32_x, false},
     {SCALES, NPUQ_FLOAT32, {2}, quantize_to_int32_scales, false},
     {ZERO_POINTS, NPUQ_INT32, {2}, quantize_to_int32_zero_points, false},
     {Y, NPUQ_INT32, {4, 2}, quantize_to_int32_y, false}}},
    {"quantize halves to int8", {.op = TEST_QUANTIZE, .axis = 0, .div_mode = true}, {
     {X, NPUQ_FLOAT32, {14}, quantize_halves_to_int8_x, false},
     {SCALES, NPUQ_FLOAT32, {1}, quantize_halves_to_int8_scales, false},
     {Y, NPUQ_INT8, {14}, quantize_halves_to_int8_y, false}}},
    {"quantize halves to int32", {.op = TEST_QUANTIZE, .axis = 0, .div_mode = true}, {
     {X, NPUQ_FLOAT32, {14}, quantize_halves_to_int8_x, false},
     {SCALES, NPUQ_FLOAT32, {1}, quantize_halves_to_int8_scales, false},
     {Y, NPUQ_INT32, {14}, quantize_halves_to_int32_y, false}}},
    {"quantize halves to uint8", {.op = TEST_QUANTIZE, .axis = 0, .div_mode = true}, {
     {X, NPUQ_FLOAT32, {14}, quantize_halves_to_int8_x, false},
     {SCALES, NPUQ_FLOAT32, {1}, quantize_halves_to_int8_scales, false},
     {ZERO_POINTS, NPUQ_UINT8, {1}, quantize_halves_to_uint8_zero_points, false},
     {Y, NPUQ_UINT8, {14}, quantize_halves_to_uint8_y, false}}},
    {"quantize division by zero", {.op = TEST_QUANTIZE, .axis = 0, .div_mode = true}, {
     {X, NPUQ_FLOAT32, {3}, quantize_division_by_zero_x, false},
     {SCALES, NPUQ_FLOAT32, {1}, quantize_division_by_zero_scales, false},
     {Y, NPUQ_INT8, {3}, quantize_division_by_zero_y, false}}},
    {"quantize rows multiply", {.op = TEST_QUANTIZE, .axis = -2, .div_mode = false}, {
     {X, NPUQ_FLOAT32, {3, 4}, quantize_rows_multiply_x, false},
     {SCALES, NPUQ_FLOAT32, {3, 1}, quantize_rows_multiply_scales, false},
     {ZERO_POINTS, NPUQ_FLOAT32, {3, 1}, quantize_rows_multiply_zero_points, false},
     {Y, NPUQ_INT8, {3, 4}, quantize_rows_multiply_y, false}}},
    {"quantize rows divide", {.op = TEST_QUANTIZE, .axis = 0, .div_mode = true}, {
     {X, NPUQ_FLOAT32, {3, 4}, quantize_rows_multiply_x, false},
     {SCALES, NPUQ_FLOAT32, {3}, quantize_rows_divide_scales, false},
     {ZERO_POINTS, NPUQ_UINT8, {3}, quantize_rows_divide_zero_points, false},
     {Y, NPUQ_UINT8, {3, 4}, quantize_rows_divide_y, false}}},
    {"quantize to quint4x2", {.op = TEST_QUANTIZE, .axis = 0, .div_mode = false}, {
     {X, NPUQ_FLOAT16, {8}, quantize_to_quint4x2_x, false},
     {SCALES, NPUQ_FLOAT32, {1}, quantize_halves_to_int8_scales, false},
     {Y, NPUQ_QUINT4X2, {1}, quantize_to_quint4x2_y, false}}},
    {"quantize to quint4x2 negative", {.op = TEST_QUANTIZE, .axis = 0, .div_mode = false}, {
     {X, NPUQ_FLOAT16, {8}, quantize_to_quint4x2_negative_x, false},
     {SCALES, NPUQ_FLOAT32, {1}, quantize_halves_to_int8_scales, false},
     {Y, NPUQ_QUINT4X2, {1}, quantize_to_quint4x2_negative_y, false}}},
    {"quantize to quint4x2 positive", {.op = TEST_QUANTIZE, .axis = 0, .div_mode = false}, {
     {X, NPUQ_FLOAT16, {8}, quantize_to_quint4x2_positive_x, false},
     {SCALES, NPUQ_FLOAT32, {1}, quantize_halves_to_int8_scales, false},
     {Y, NPUQ_QUINT4X2, {1}, quantize_to_quint4x2_positive_y, false}}},
    {"group-quant device", {.op = TEST_GROUP_QUANT}, {
     {X, NPUQ_FLOAT16, {6, 4}, group_quant_device_x, false},
     {SCALE, NPUQ_FLOAT32, {4, 4}, group_quant_device_scale, false},
     {GROUP_INDEX, NPUQ_INT32, {4}, group_quant_device_group_index, false},
     {OFFSET, NPUQ_FLOAT32, {1}, group_quant_device_offset, false}, {Y, NPUQ_INT8, {6, 4}, group_quant_device_y, false}}},
    {"trans-quant-param device", {.op = TEST_TRANS_QUANT_PARAM}, {
     {SCALE, NPUQ_FLOAT32, {3}, trans_quant_param_device_scale, false},
     {OFFSET, NPUQ_FLOAT32, {3}, trans_quant_param_device_offset, false},
     {Y, NPUQ_INT64, {3}, trans_quant_param_device_y, false}}},
    {"trans-quant-param truncated", {.op = TEST_TRANS_QUANT_PARAM}, {
     {SCALE, NPUQ_FLOAT32, {5}, trans_quant_param_truncated_scale, false},
     {OFFSET, NPUQ_FLOAT32, {5}, trans_quant_param_truncated_offset, false},
     {Y, NPUQ_INT64, {5}, trans_quant_param_truncated_y, false}}},
    {"trans-quant-param rounded", {.op = TEST_TRANS_QUANT_PARAM, .round_mode = NPUQ_ROUND_NEAREST}, {
     {SCALE, NPUQ_FLOAT32, {5}, trans_quant_param_truncated_scale, false},
     {OFFSET, NPUQ_FLOAT32, {5}, trans_quant_param_truncated_offset, false},
     {Y, NPUQ_UINT64, {5}, trans_quant_param_rounded_y, false}}},
    {"trans-quant-param broadcast", {.op = TEST_TRANS_QUANT_PARAM}, {
     {SCALE, NPUQ_FLOAT32, {1}, quantize_halves_to_int8_scales, false},
     {OFFSET, NPUQ_FLOAT32, {5}, trans_quant_param_broadcast_offset, false},
     {Y, NPUQ_INT64, {5}, trans_quant_param_broadcast_y, false}}},
    {"trans-quant-param edges mode 0", {.op = TEST_TRANS_QUANT_PARAM, .round_mode = 0}, {
     {SCALE, NPUQ_FLOAT32, {10}, trans_quant_param_edges_mode_0_scale, false},
     {Y, NPUQ_INT64, {10}, trans_quant_param_edges_mode_0_y, false}}},
    {"trans-quant-param edges mode 1", {.op = TEST_TRANS_QUANT_PARAM, .round_mode = NPUQ_ROUND_NEAREST}, {
     {SCALE, NPUQ_FLOAT32, {10}, trans_quant_param_edges_mode_0_scale, false},
     {Y, NPUQ_INT64, {10}, trans_quant_param_edges_mode_1_y, false}}},
    {"dynamic to int8", {.op = TEST_DYNAMIC_QUANT_ASYMMETRIC}, {
     {X, NPUQ_FLOAT16, {4, 8}, dynamic_to_int8_x, false}, {Y, NPUQ_INT8, {4, 8}, dynamic_to_int8_y, false},
     {SCALE, NPUQ_FLOAT32, {4}, dynamic_to_int8_scale, false},
     {OFFSET, NPUQ_FLOAT32, {4}, dynamic_to_int8_offset, false}}},
    {"dynamic Fortran order", {.op = TEST_DYNAMIC_QUANT_ASYMMETRIC}, {
     {X, NPUQ_FLOAT16, {4, 8}, dynamic_fortran_order_x, true}, {Y, NPUQ_INT8, {4, 8}, dynamic_to_int8_y, false},
     {SCALE, NPUQ_FLOAT32, {4}, dynamic_to_int8_scale, false},
     {OFFSET, NPUQ_FLOAT32, {4}, dynamic_to_int8_offset, false}}},
    {"dynamic to quint4x2", {.op = TEST_DYNAMIC_QUANT_ASYMMETRIC}, {
     {X, NPUQ_FLOAT16, {4, 8}, dynamic_to_int8_x, false}, {Y, NPUQ_QUINT4X2, {4, 1}, dynamic_to_quint4x2_y, false},
     {SCALE, NPUQ_FLOAT32, {4}, dynamic_to_quint4x2_scale, false},
     {OFFSET, NPUQ_FLOAT32, {4}, dynamic_to_quint4x2_offset, false}}},
    {"dynamic bfloat16", {.op = TEST_DYNAMIC_QUANT_ASYMMETRIC}, {
     {X, NPUQ_BFLOAT16, {1, 8}, dynamic_bfloat16_x, false}, {Y, NPUQ_INT8, {1, 8}, dynamic_bfloat16_y, false},
     {SCALE, NPUQ_FLOAT32, {1}, dynamic_bfloat16_scale, false},
     {OFFSET, NPUQ_FLOAT32, {1}, dynamic_bfloat16_offset, false}}},
    {"dynamic smooth scales", {.op = TEST_DYNAMIC_QUANT_ASYMMETRIC}, {
     {X, NPUQ_FLOAT16, {4, 8}, dynamic_to_int8_x, false},
     {SMOOTH_SCALES, NPUQ_FLOAT16, {8}, dynamic_smooth_scales_smooth_scales, false},
     {Y, NPUQ_INT8, {4, 8}, dynamic_smooth_scales_y, false},
     {SCALE, NPUQ_FLOAT32, {4}, dynamic_smooth_scales_scale, false},
     {OFFSET, NPUQ_FLOAT32, {4}, dynamic_smooth_scales_offset, false}}},
    {"dynamic groups", {.op = TEST_DYNAMIC_QUANT_ASYMMETRIC}, {
     {X, NPUQ_FLOAT16, {4, 8}, dynamic_to_int8_x, false},
     {SMOOTH_SCALES, NPUQ_FLOAT16, {3, 8}, dynamic_groups_smooth_scales, false},
     {GROUP_INDEX, NPUQ_INT64, {3}, dynamic_groups_group_index, false},
     {Y, NPUQ_INT8, {4, 8}, dynamic_groups_y, false}, {SCALE, NPUQ_FLOAT32, {4}, dynamic_groups_scale, false},
     {OFFSET, NPUQ_FLOAT32, {4}, dynamic_groups_offset, false}}},
    {"dynamic per tensor", {.op = TEST_DYNAMIC_QUANT_ASYMMETRIC, .quant_mode = NPUQ_PER_TENSOR}, {
     {X, NPUQ_FLOAT16, {4, 8}, dynamic_to_int8_x, false}, {Y, NPUQ_INT8, {4, 8}, dynamic_per_tensor_y, false},
     {SCALE, NPUQ_FLOAT32, {1}, dynamic_per_tensor_scale, false},
     {OFFSET, NPUQ_FLOAT32, {1}, dynamic_per_tensor_offset, false}}},
    {"dynamic scale of one", {.op = TEST_DYNAMIC_QUANT_ASYMMETRIC}, {
     {X, NPUQ_FLOAT16, {1, 8}, dynamic_scale_of_one_x, false}, {Y, NPUQ_INT8, {1, 8}, dynamic_scale_of_one_y, false},
     {SCALE, NPUQ_FLOAT32, {1}, quantize_halves_to_int8_scales, false},
     {OFFSET, NPUQ_FLOAT32, {1}, dynamic_scale_of_one_offset, false}}},
    {"dynamic constant 1", {.op = TEST_DYNAMIC_QUANT_ASYMMETRIC}, {
     {X, NPUQ_FLOAT16, {1, 8}, dynamic_constant_1_x, false}, {Y, NPUQ_INT8, {1, 8}, dynamic_constant_1_y, false},
     {SCALE, NPUQ_FLOAT32, {1}, dynamic_constant_1_scale, false},
     {OFFSET, NPUQ_FLOAT32, {1}, dynamic_constant_1_offset, false}}},
    {"dynamic constant 65504", {.op = TEST_DYNAMIC_QUANT_ASYMMETRIC}, {
     {X, NPUQ_FLOAT16, {1, 8}, dynamic_constant_65504_x, false},
     {Y, NPUQ_INT8, {1, 8}, dynamic_constant_65504_y, false},
     {SCALE, NPUQ_FLOAT32, {1}, dynamic_constant_1_scale, false}, {OFFSET, NPUQ_FLOAT32, {1}, NULL, false}}},
    {"dynamic constant subnormal", {.op = TEST_DYNAMIC_QUANT_ASYMMETRIC}, {
     {X, NPUQ_FLOAT16, {1, 8}, dynamic_constant_subnormal_x, false},
     {Y, NPUQ_INT8, {1, 8}, dynamic_constant_subnormal_y, false},
     {SCALE, NPUQ_FLOAT32, {1}, dynamic_constant_1_scale, false},
     {OFFSET, NPUQ_FLOAT32, {1}, dynamic_constant_subnormal_offset, false}}},
    {"dynamic infinities and NaN", {.op = TEST_DYNAMIC_QUANT_ASYMMETRIC}, {
     {X, NPUQ_FLOAT16, {3, 8}, dynamic_infinities_and_nan_x, false},
     {Y, NPUQ_INT8, {3, 8}, dynamic_infinities_and_nan_y, false},
     {SCALE, NPUQ_FLOAT32, {3}, dynamic_infinities_and_nan_scale, false},
     {OFFSET, NPUQ_FLOAT32, {3}, dynamic_infinities_and_nan_offset, false}}},
    {"dynamic-quant device", {.op = TEST_DYNAMIC_QUANT}, {
     {X, NPUQ_FLOAT16, {3, 3}, dynamic_quant_device_x, false}, {Y, NPUQ_INT8, {3, 3}, dynamic_quant_device_y, false},
     {SCALE, NPUQ_FLOAT32, {3}, dynamic_quant_device_scale, false}}},
    {"dynamic-quant device inverse", {.op = TEST_DYNAMIC_QUANT, .scale_form = NPUQ_SCALE_INVERSE}, {
     {X, NPUQ_FLOAT16, {3, 3}, dynamic_quant_device_x, false}, {Y, NPUQ_INT8, {3, 3}, dynamic_quant_device_y, false},
     {SCALE, NPUQ_FLOAT32, {3}, dynamic_quant_device_inverse_scale, false}}},
    {"dynamic-quant to int8 product", {.op = TEST_DYNAMIC_QUANT, .scale_form = NPUQ_SCALE_PRODUCT}, {
     {X, NPUQ_FLOAT16, {4, 8}, dynamic_to_int8_x, false},
     {Y, NPUQ_INT8, {4, 8}, dynamic_quant_to_int8_product_y, false},
     {SCALE, NPUQ_FLOAT32, {4}, dynamic_quant_to_int8_product_scale, false}}},
    {"dynamic-quant to quint4x2 product", {.op = TEST_DYNAMIC_QUANT, .scale_form = NPUQ_SCALE_PRODUCT}, {
     {X, NPUQ_FLOAT16, {4, 8}, dynamic_to_int8_x, false},
     {Y, NPUQ_QUINT4X2, {4, 1}, dynamic_quant_to_quint4x2_product_y, false},
     {SCALE, NPUQ_FLOAT32, {4}, dynamic_quant_to_quint4x2_product_scale, false}}},
    {"dynamic-quant to int8 inverse", {.op = TEST_DYNAMIC_QUANT, .scale_form = NPUQ_SCALE_INVERSE}, {
     {X, NPUQ_FLOAT16, {4, 8}, dynamic_to_int8_x, false},
     {Y, NPUQ_INT8, {4, 8}, dynamic_quant_to_int8_product_y, false},
     {SCALE, NPUQ_FLOAT32, {4}, dynamic_quant_to_int8_product_scale, false}}},
    {"dynamic-quant to quint4x2 inverse", {.op = TEST_DYNAMIC_QUANT, .scale_form = NPUQ_SCALE_INVERSE}, {
     {X, NPUQ_FLOAT16, {4, 8}, dynamic_to_int8_x, false},
     {Y, NPUQ_QUINT4X2, {4, 1}, dynamic_quant_to_quint4x2_product_y, false},
     {SCALE, NPUQ_FLOAT32, {4}, dynamic_quant_to_quint4x2_inverse_scale, false}}},
    {"dynamic-quant smooth scales", {.op = TEST_DYNAMIC_QUANT}, {
     {X, NPUQ_FLOAT16, {4, 8}, dynamic_to_int8_x, false},
     {SMOOTH_SCALES, NPUQ_FLOAT16, {8}, dynamic_smooth_scales_smooth_scales, false},
     {Y, NPUQ_INT8, {4, 8}, dynamic_quant_smooth_scales_y, false},
     {SCALE, NPUQ_FLOAT32, {4}, dynamic_quant_smooth_scales_scale, false}}},
    {"dynamic-quant groups", {.op = TEST_DYNAMIC_QUANT}, {
     {X, NPUQ_FLOAT16, {4, 8}, dynamic_to_int8_x, false},
     {SMOOTH_SCALES, NPUQ_FLOAT16, {3, 8}, dynamic_groups_smooth_scales, false},
     {GROUP_INDEX, NPUQ_INT64, {3}, dynamic_groups_group_index, false},
     {Y, NPUQ_INT8, {4, 8}, dynamic_quant_groups_y, false},
     {SCALE, NPUQ_FLOAT32, {4}, dynamic_quant_groups_scale, false}}},
    {"dynamic-quant per tensor", {.op = TEST_DYNAMIC_QUANT, .quant_mode = NPUQ_PER_TENSOR}, {
     {X, NPUQ_FLOAT16, {4, 8}, dynamic_to_int8_x, false}, {Y, NPUQ_INT8, {4, 8}, dynamic_quant_per_tensor_y, false},
     {SCALE, NPUQ_FLOAT32, {1}, dynamic_quant_per_tensor_scale, false}}},
    {"dynamic-quant special rows product", {.op = TEST_DYNAMIC_QUANT, .scale_form = NPUQ_SCALE_PRODUCT}, {
     {X, NPUQ_BFLOAT16, {3, 8}, dynamic_quant_special_rows_product_x, false},
     {Y, NPUQ_INT8, {3, 8}, dynamic_quant_special_rows_product_y, false},
     {SCALE, NPUQ_FLOAT32, {3}, dynamic_quant_special_rows_product_scale, false}}},
    {"dynamic-quant special rows inverse", {.op = TEST_DYNAMIC_QUANT, .scale_form = NPUQ_SCALE_INVERSE}, {
     {X, NPUQ_BFLOAT16, {3, 8}, dynamic_quant_special_rows_product_x, false},
     {Y, NPUQ_INT8, {3, 8}, dynamic_quant_special_rows_product_y, false},
     {SCALE, NPUQ_FLOAT32, {3}, dynamic_quant_special_rows_inverse_scale, false}}},
    {"dynamic-block-quant of 4", {.op = TEST_DYNAMIC_BLOCK_QUANT, .block = 4}, {
     {X, NPUQ_FLOAT16, {4, 8}, dynamic_to_int8_x, false}, {Y, NPUQ_INT8, {4, 8}, dynamic_block_quant_of_4_y, false},
     {SCALE, NPUQ_FLOAT32, {4, 2}, dynamic_block_quant_of_4_scale, false}}},
    {"dynamic-block-quant least scale", {.op = TEST_DYNAMIC_BLOCK_QUANT, .block = 128, .min_scale = 50}, {
     {X, NPUQ_FLOAT16, {4, 8}, dynamic_to_int8_x, false},
     {Y, NPUQ_INT8, {4, 8}, dynamic_block_quant_least_scale_y, false},
     {SCALE, NPUQ_FLOAT32, {4, 1}, dynamic_block_quant_least_scale_scale, false}}},
    {"dynamic-block-quant special blocks", {.op = TEST_DYNAMIC_BLOCK_QUANT, .block = 128}, {
     {X, NPUQ_BFLOAT16, {2, 4}, dynamic_block_quant_special_blocks_x, false},
     {Y, NPUQ_INT8, {2, 4}, dynamic_constant_1_y, false},
     {SCALE, NPUQ_FLOAT32, {2, 1}, dynamic_block_quant_special_blocks_scale, false}}},
    {"dynamic-block-quant special blocks, least scale", {.op = TEST_DYNAMIC_BLOCK_QUANT, .block = 128, .min_scale = 50}, {
     {X, NPUQ_BFLOAT16, {2, 4}, dynamic_block_quant_special_blocks_x, false},
     {Y, NPUQ_INT8, {2, 4}, dynamic_block_quant_special_blocks_least_scale_y, false},
     {SCALE, NPUQ_FLOAT32, {2, 1}, dynamic_block_quant_special_blocks_least_scale_scale, false}}},
    {"dynamic-block-quant to quint4x2", {.op = TEST_DYNAMIC_BLOCK_QUANT, .block = 128}, {
     {X, NPUQ_FLOAT16, {4, 8}, dynamic_to_int8_x, false},
     {Y, NPUQ_QUINT4X2, {4, 1}, dynamic_quant_to_quint4x2_product_y, false},
     {SCALE, NPUQ_FLOAT32, {4, 1}, dynamic_quant_to_quint4x2_product_scale, false}}},
    {"dynamic-block-quant to quint4x2 and backwards", {.op = TEST_DYNAMIC_BLOCK_QUANT, .block = 8}, {
     {X, NPUQ_FLOAT16, {4, 16}, dynamic_block_quant_to_quint4x2_and_backwards_x, false},
     {Y, NPUQ_QUINT4X2, {4, 2}, dynamic_block_quant_to_quint4x2_and_backwards_y, false},
     {SCALE, NPUQ_FLOAT32, {4, 2}, dynamic_block_quant_to_quint4x2_and_backwards_scale, false}}},
    {"anti-quant offset before the product", {.op = TEST_ANTI_QUANT}, {
     {X, NPUQ_INT8, {4}, anti_quant_offset_before_the_product_x, false},
     {SCALE, NPUQ_FLOAT32, {1}, anti_quant_offset_before_the_product_scale, false},
     {OFFSET, NPUQ_FLOAT32, {1}, anti_quant_offset_before_the_product_scale, false},
     {Y, NPUQ_FLOAT32, {4}, anti_quant_offset_before_the_product_y, false}}},
    {"anti-quant to float16", {.op = TEST_ANTI_QUANT}, {
     {X, NPUQ_INT8, {8}, anti_quant_to_float16_x, false},
     {SCALE, NPUQ_FLOAT32, {1}, anti_quant_to_float16_scale, false},
     {OFFSET, NPUQ_FLOAT32, {1}, anti_quant_to_float16_offset, false},
     {Y, NPUQ_FLOAT16, {8}, anti_quant_to_float16_y, false}}},
    {"anti-quant to bfloat16", {.op = TEST_ANTI_QUANT}, {
     {X, NPUQ_INT8, {8}, anti_quant_to_float16_x, false},
     {SCALE, NPUQ_FLOAT32, {1}, anti_quant_to_float16_scale, false},
     {OFFSET, NPUQ_FLOAT32, {1}, anti_quant_to_float16_offset, false},
     {Y, NPUQ_BFLOAT16, {8}, anti_quant_to_bfloat16_y, false}}},
    {"anti-quant quint4x2", {.op = TEST_ANTI_QUANT}, {
     {X, NPUQ_QUINT4X2, {1}, anti_quant_quint4x2_x, false},
     {SCALE, NPUQ_FLOAT32, {8}, anti_quant_quint4x2_scale, false}, {Y, NPUQ_FLOAT16, {8}, anti_quant_quint4x2_y, false}}},
    {"anti-quant groups of rows", {.op = TEST_ANTI_QUANT}, {
     {X, NPUQ_INT8, {4, 2}, anti_quant_groups_of_rows_x, false},
     {SCALE, NPUQ_FLOAT32, {2, 2}, anti_quant_groups_of_rows_scale, false},
     {Y, NPUQ_FLOAT16, {4, 2}, anti_quant_groups_of_rows_y, false}}},
    {"anti-quant groups of rows with offset", {.op = TEST_ANTI_QUANT}, {
     {X, NPUQ_INT8, {4, 2}, anti_quant_groups_of_rows_x, false},
     {SCALE, NPUQ_FLOAT32, {2, 2}, anti_quant_groups_of_rows_scale, false},
     {OFFSET, NPUQ_FLOAT32, {2, 2}, anti_quant_groups_of_rows_with_offset_offset, false},
     {Y, NPUQ_FLOAT16, {4, 2}, anti_quant_groups_of_rows_with_offset_y, false}}},
    {"dequant to float16", {.op = TEST_DEQUANT}, {
     {X, NPUQ_INT32, {2, 4}, dequant_to_float16_x, false},
     {WEIGHT_SCALE, NPUQ_FLOAT32, {4}, dequant_to_float16_weight_scale, false},
     {Y, NPUQ_FLOAT16, {2, 4}, dequant_to_float16_y, false}}},
    {"dequant to bfloat16", {.op = TEST_DEQUANT}, {
     {X, NPUQ_INT32, {2, 4}, dequant_to_float16_x, false},
     {WEIGHT_SCALE, NPUQ_FLOAT32, {4}, dequant_to_float16_weight_scale, false},
     {Y, NPUQ_BFLOAT16, {2, 4}, dequant_to_bfloat16_y, false}}},
    {"dequant activation scale", {.op = TEST_DEQUANT}, {
     {X, NPUQ_INT32, {2, 4}, dequant_to_float16_x, false},
     {WEIGHT_SCALE, NPUQ_FLOAT32, {4}, dequant_to_float16_weight_scale, false},
     {ACTIVATION_SCALE, NPUQ_FLOAT32, {2}, dequant_activation_scale_activation_scale, false},
     {Y, NPUQ_FLOAT16, {2, 4}, dequant_activation_scale_y, false}}},
    {"dequant int32 bias", {.op = TEST_DEQUANT}, {
     {X, NPUQ_INT32, {2, 4}, dequant_to_float16_x, false},
     {WEIGHT_SCALE, NPUQ_FLOAT32, {4}, dequant_to_float16_weight_scale, false},
     {ACTIVATION_SCALE, NPUQ_FLOAT32, {2}, dequant_activation_scale_activation_scale, false},
     {BIAS, NPUQ_INT32, {4}, dequant_int32_bias_bias, false}, {Y, NPUQ_FLOAT16, {2, 4}, dequant_int32_bias_y, false}}},
    {"dequant float32 bias", {.op = TEST_DEQUANT}, {
     {X, NPUQ_INT32, {2, 4}, dequant_to_float16_x, false},
     {WEIGHT_SCALE, NPUQ_FLOAT32, {4}, dequant_to_float16_weight_scale, false},
     {ACTIVATION_SCALE, NPUQ_FLOAT32, {2}, dequant_activation_scale_activation_scale, false},
     {BIAS, NPUQ_FLOAT32, {4}, dequant_float32_bias_bias, false},
     {Y, NPUQ_FLOAT16, {2, 4}, dequant_float32_bias_y, false}}},
    {"requant to int8", {.op = TEST_REQUANT}, {
     {X, NPUQ_INT32, {2, 4}, dequant_to_float16_x, false}, {WORDS, NPUQ_INT64, {4}, requant_to_int8_words, false},
     {Y, NPUQ_INT8, {2, 4}, requant_to_int8_y, false}}},
    {"requant to float16", {.op = TEST_REQUANT}, {
     {X, NPUQ_INT32, {2, 4}, dequant_to_float16_x, false}, {WORDS, NPUQ_INT64, {4}, requant_to_int8_words, false},
     {Y, NPUQ_FLOAT16, {2, 4}, requant_to_float16_y, false}}},
    {"requant two clamps", {.op = TEST_REQUANT}, {
     {X, NPUQ_INT32, {4}, requant_two_clamps_x, false}, {WORDS, NPUQ_UINT64, {4}, requant_two_clamps_words, false},
     {Y, NPUQ_INT8, {4}, requant_two_clamps_y, false}}},
    {"requant bias", {.op = TEST_REQUANT}, {
     {X, NPUQ_INT32, {4}, requant_two_clamps_x, false}, {WORDS, NPUQ_UINT64, {4}, requant_two_clamps_words, false},
     {BIAS, NPUQ_INT32, {4}, requant_bias_bias, false}, {Y, NPUQ_INT8, {4}, requant_bias_y, false}}},
};
