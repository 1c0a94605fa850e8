/* SPDX-License-Identifier: BSD-3-Clause */
#include "npuquant_main.h"

int main(int argc, char **argv)
{
    return npuquant_main(argc, argv);
}
