/* SPDX-License-Identifier: BSD-3-Clause */
#include "executor_openmp.h"
#include "executor_check.h"

int main(void)
{
    return executor_check("OpenMP", &openmp_executor);
}
