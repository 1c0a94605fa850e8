/* SPDX-License-Identifier: BSD-3-Clause */
/* A diagnosis as text and as JSON. */
#ifndef NPUQUANT_DIAGNOSIS_REPORT_H
#define NPUQUANT_DIAGNOSIS_REPORT_H

#include "text.h"

#include <diagnose.h>

void diagnosis_report_text(struct text *text, const struct call *call, const struct array theirs[RESULTS],
                           const struct diagnosis *diagnosis);

/* The first line, and how the device's division explains the differences. */
void diagnosis_report_verdict(struct text *text, const struct call *call, const struct diagnosis *diagnosis);

/* How the device's division explains the differences; nothing if no difference is admissible. */
void diagnosis_report_admission(struct text *text, const struct call *call, const struct admission *admission);

void diagnosis_report_json(struct text *text, const struct call *call, const struct array theirs[RESULTS],
                           const struct diagnosis *diagnosis);

#endif
