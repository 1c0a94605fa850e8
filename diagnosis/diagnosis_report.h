/* SPDX-License-Identifier: BSD-3-Clause */
/* A diagnosis as text and as JSON. */
#ifndef NPUQUANT_DIAGNOSIS_REPORT_H
#define NPUQUANT_DIAGNOSIS_REPORT_H

#include "diagnose.h"
#include "text.h"

void diagnosis_report_text(struct text *text, const struct call *call, const struct array theirs[RESULTS],
                           const struct diagnosis *diagnosis);

void diagnosis_report_json(struct text *text, const struct call *call, const struct array theirs[RESULTS],
                           const struct diagnosis *diagnosis);

#endif
