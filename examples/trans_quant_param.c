/* SPDX-License-Identifier: BSD-3-Clause */
/* Packs four scales and offsets for the matrix unit, and unpacks the words. */
#include <inttypes.h>
#include <npuquant/npuquant.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    float scale[4] = {1.0458984375f, 0.1f, 0.001f, -2.5f};
    float offset[4] = {1.0f, 1.5f, -300.0f, -2.5f};
    uint64_t words[4];
    const npuq_tensor ts = npuq_vector(scale, NPUQ_FLOAT32, 4);
    const npuq_tensor to = npuq_vector(offset, NPUQ_FLOAT32, 4);
    const npuq_tensor ty = npuq_vector(words, NPUQ_UINT64, 4);

    if (npuq_trans_quant_param(&ts, &to, NPUQ_ROUND_TRUNCATE, &ty) != NPUQ_OK) {
        (void)fprintf(stderr, "%s\n", npuq_last_error());
        return 1;
    }
    for (int i = 0; i < 4; i++) {
        const uint32_t bits = (uint32_t)words[i];
        const int field = (int)(words[i] >> 37 & 0x1FF);
        float kept;

        memcpy(&kept, &bits, sizeof kept);
        printf("0x%012" PRIX64 ": scale %.9g, offset %d\n", words[i], (double)kept, field < 256 ? field : field - 512);
    }
    return 0;
}
