/* SPDX-License-Identifier: BSD-3-Clause */
/* A diagnosis as text and as JSON. */
#ifndef NPUQUANT_DIAGNOSIS_REPORT_H
#define NPUQUANT_DIAGNOSIS_REPORT_H

#include "diagnose.h"
#include "text.h"

void diagnosis_report_text(struct text *text, const struct call *call, const struct array theirs[RESULTS],
                           const struct diagnosis *diagnosis);

/* The first line of it, and what the device's division has to do with it. */
void diagnosis_report_verdict(struct text *text, const struct call *call, const struct diagnosis *diagnosis);

/* What the device's division has to do with it; nothing if nothing that differs is admissible. */
void diagnosis_report_admission(struct text *text, const struct call *call, const struct admission *admission);

void diagnosis_report_json(struct text *text, const struct call *call, const struct array theirs[RESULTS],
                           const struct diagnosis *diagnosis);

#endif
