/* SPDX-License-Identifier: BSD-3-Clause */
/* The quant-matmul subcommand: the tool's own product, then an operator of the library on its sums. */
#ifndef NPUQUANT_QUANT_MATMUL_H
#define NPUQUANT_QUANT_MATMUL_H

#include "operators.h"

bool check_quant_matmul(const struct arguments *arguments);
bool check_quant_matmul_inputs(const struct operands *operands);
void shape_quant_matmul(struct operands *operands);
npuq_status call_quant_matmul(const struct operands *operands, const npuq_executor *executor);
bool describe_quant_matmul(const struct operands *operands, struct request *request);

#endif
