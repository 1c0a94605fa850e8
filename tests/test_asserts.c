/* SPDX-License-Identifier: BSD-3-Clause */
/* Skipped in a build without the library's asserts. */
#include <stdio.h>

int main(void)
{
#ifdef NDEBUG
    puts("SKIPPED: asserts are off; meson configure -Db_ndebug=false has them");
    return 77;
#else
    return 0;
#endif
}
