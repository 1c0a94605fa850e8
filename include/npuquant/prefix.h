/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Gives the symbols of all functions the prefix NPUQ_PREFIX. Programs write the names without it. For npuquant.h.
 */
#ifndef NPUQUANT_PREFIX_H
#define NPUQUANT_PREFIX_H

/** @cond internal */
#define NPUQ_JOIN(prefix, name)          prefix##name
#define NPUQ_JOIN_EXPANDED(prefix, name) NPUQ_JOIN(prefix, name)
#define NPUQ_PREFIXED(name)              NPUQ_JOIN_EXPANDED(NPUQ_PREFIX, name)

#define npuq_active_backend                        NPUQ_PREFIXED(npuq_active_backend)
#define npuq_anti_mx_quant                         NPUQ_PREFIXED(npuq_anti_mx_quant)
#define npuq_anti_quant                            NPUQ_PREFIXED(npuq_anti_quant)
#define npuq_backend_available                     NPUQ_PREFIXED(npuq_backend_available)
#define npuq_backend_name                          NPUQ_PREFIXED(npuq_backend_name)
#define npuq_call_rebind                           NPUQ_PREFIXED(npuq_call_rebind)
#define npuq_call_run                              NPUQ_PREFIXED(npuq_call_run)
#define npuq_call_units                            NPUQ_PREFIXED(npuq_call_units)
#define npuq_dequant                               NPUQ_PREFIXED(npuq_dequant)
#define npuq_dtype_name                            NPUQ_PREFIXED(npuq_dtype_name)
#define npuq_dtype_size                            NPUQ_PREFIXED(npuq_dtype_size)
#define npuq_dynamic_block_quant                   NPUQ_PREFIXED(npuq_dynamic_block_quant)
#define npuq_dynamic_block_quant_float8            NPUQ_PREFIXED(npuq_dynamic_block_quant_float8)
#define npuq_dynamic_mx_quant                      NPUQ_PREFIXED(npuq_dynamic_mx_quant)
#define npuq_dynamic_quant                         NPUQ_PREFIXED(npuq_dynamic_quant)
#define npuq_dynamic_quant_apply                   NPUQ_PREFIXED(npuq_dynamic_quant_apply)
#define npuq_dynamic_quant_asymmetric              NPUQ_PREFIXED(npuq_dynamic_quant_asymmetric)
#define npuq_dynamic_quant_float8                  NPUQ_PREFIXED(npuq_dynamic_quant_float8)
#define npuq_dynamic_quant_min_max                 NPUQ_PREFIXED(npuq_dynamic_quant_min_max)
#define npuq_dynamic_quant_params                  NPUQ_PREFIXED(npuq_dynamic_quant_params)
#define npuq_dynamic_quant_symmetric_apply         NPUQ_PREFIXED(npuq_dynamic_quant_symmetric_apply)
#define npuq_dynamic_quant_symmetric_params        NPUQ_PREFIXED(npuq_dynamic_quant_symmetric_params)
#define npuq_group_quant                           NPUQ_PREFIXED(npuq_group_quant)
#define npuq_last_error                            NPUQ_PREFIXED(npuq_last_error)
#define npuq_matrix                                NPUQ_PREFIXED(npuq_matrix)
#define npuq_mx_scale_shape                        NPUQ_PREFIXED(npuq_mx_scale_shape)
#define npuq_prepare_anti_mx_quant                 NPUQ_PREFIXED(npuq_prepare_anti_mx_quant)
#define npuq_prepare_anti_quant                    NPUQ_PREFIXED(npuq_prepare_anti_quant)
#define npuq_prepare_dequant                       NPUQ_PREFIXED(npuq_prepare_dequant)
#define npuq_prepare_dynamic_block_quant           NPUQ_PREFIXED(npuq_prepare_dynamic_block_quant)
#define npuq_prepare_dynamic_block_quant_float8    NPUQ_PREFIXED(npuq_prepare_dynamic_block_quant_float8)
#define npuq_prepare_dynamic_mx_quant              NPUQ_PREFIXED(npuq_prepare_dynamic_mx_quant)
#define npuq_prepare_dynamic_quant                 NPUQ_PREFIXED(npuq_prepare_dynamic_quant)
#define npuq_prepare_dynamic_quant_apply           NPUQ_PREFIXED(npuq_prepare_dynamic_quant_apply)
#define npuq_prepare_dynamic_quant_asymmetric      NPUQ_PREFIXED(npuq_prepare_dynamic_quant_asymmetric)
#define npuq_prepare_dynamic_quant_float8          NPUQ_PREFIXED(npuq_prepare_dynamic_quant_float8)
#define npuq_prepare_dynamic_quant_min_max         NPUQ_PREFIXED(npuq_prepare_dynamic_quant_min_max)
#define npuq_prepare_dynamic_quant_symmetric_apply NPUQ_PREFIXED(npuq_prepare_dynamic_quant_symmetric_apply)
#define npuq_prepare_group_quant                   NPUQ_PREFIXED(npuq_prepare_group_quant)
#define npuq_prepare_quantize                      NPUQ_PREFIXED(npuq_prepare_quantize)
#define npuq_prepare_requant                       NPUQ_PREFIXED(npuq_prepare_requant)
#define npuq_quantize                              NPUQ_PREFIXED(npuq_quantize)
#define npuq_requant                               NPUQ_PREFIXED(npuq_requant)
#define npuq_set_backend                           NPUQ_PREFIXED(npuq_set_backend)
#define npuq_status_name                           NPUQ_PREFIXED(npuq_status_name)
#define npuq_tensor_contiguous                     NPUQ_PREFIXED(npuq_tensor_contiguous)
#define npuq_trans_quant_param                     NPUQ_PREFIXED(npuq_trans_quant_param)
#define npuq_vector                                NPUQ_PREFIXED(npuq_vector)
#define npuq_version                               NPUQ_PREFIXED(npuq_version)
/** @endcond */

#endif
