/* SPDX-License-Identifier: BSD-3-Clause */
/* Quantises a tensor per tensor while several machines have its rows. The ranks exchange two floats, and the bits are
 * those of one process. Run it with any number of ranks: mpiexec -n 4 mpi_per_tensor */
#include <npuquant/npuquant.h>

#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 1023, COLS = 776 };

/* Combines ranges {min, max}. Not MPI_MIN and MPI_MAX, which do not say what becomes of NaN: here it wins. */
static void combine(void *in, void *in_out, int *count, MPI_Datatype *type)
{
    const float(*a)[2] = in;
    float(*b)[2] = in_out;

    (void)type;
    for (int i = 0; i < *count; i++) {
        if (isnan(a[i][0]) || isnan(b[i][0])) {
            b[i][0] = b[i][1] = NAN;
        } else {
            b[i][0] = a[i][0] < b[i][0] ? a[i][0] : b[i][0];
            b[i][1] = a[i][1] > b[i][1] ? a[i][1] : b[i][1];
        }
    }
}

/* x and y are this rank's rows, perhaps none; every rank gets the same scale and offset. */
static npuq_status quantize_sharded(const npuq_tensor *x, const npuq_tensor *y, float *scale, float *offset,
                                    MPI_Datatype range_type, MPI_Op combine_op, const npuq_executor *executor)
{
    float range[2] = {NAN, NAN};
    const npuq_tensor min = npuq_vector(&range[0], NPUQ_FLOAT32, 1);
    const npuq_tensor max = npuq_vector(&range[1], NPUQ_FLOAT32, 1);
    const npuq_tensor scale_view = npuq_vector(scale, NPUQ_FLOAT32, 1);
    const npuq_tensor offset_view = npuq_vector(offset, NPUQ_FLOAT32, 1);
    npuq_status status = npuq_dynamic_quant_min_max(x, NULL, NULL, NPUQ_PER_TENSOR, &min, &max, executor);

    if (status != NPUQ_OK) { /* the others wait in MPI_Allreduce() */
        (void)fprintf(stderr, "%s\n", npuq_last_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Allreduce(MPI_IN_PLACE, range, 1, range_type, combine_op, MPI_COMM_WORLD);
    status = npuq_dynamic_quant_params(&min, &max, y->dtype, &scale_view, &offset_view);
    if (status == NPUQ_OK) {
        status = npuq_dynamic_quant_apply(x, NULL, NULL, NPUQ_PER_TENSOR, &scale_view, &offset_view, y, executor);
    }
    return status;
}

/* ---- the same in one process, to compare with -------------------------------------------------------------------- */

/* Element i of the whole tensor: every rank can make its own part. */
static float element(size_t i, bool with_nan)
{
    const uint32_t bits = (uint32_t)i * 2654435761u;

    return with_nan && i == ROWS / 2 * COLS + 3 ? NAN : (float)(bits >> 8) / 65536 - (float)(i % 7);
}

static void *allocate(size_t size)
{
    void *memory = malloc(size > 0 ? size : 1);

    if (!memory) {
        (void)fprintf(stderr, "out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
    return memory;
}

static void check(npuq_status status)
{
    if (status != NPUQ_OK) {
        (void)fprintf(stderr, "%s\n", npuq_last_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Quantises the tensor with all ranks, and again on rank 0 alone; whether all bytes are the same. */
static bool run(int rank, int ranks, bool with_nan, MPI_Datatype range_type, MPI_Op combine_op)
{
    const int64_t first = (int64_t)ROWS * rank / ranks;
    const int64_t rows = (int64_t)ROWS * (rank + 1) / ranks - first;
    const size_t count = (size_t)rows * COLS;
    const size_t begin = (size_t)first * COLS;
    float *x = allocate(count * sizeof *x);
    int8_t *y = allocate(count);
    float scale[2];
    float offset[2];
    bool same = true;

    for (size_t i = 0; i < count; i++) {
        x[i] = element(begin + i, with_nan);
    }
    const npuq_tensor x_view = npuq_matrix(x, NPUQ_FLOAT32, rows, COLS, 0);
    const npuq_tensor y_view = npuq_matrix(y, NPUQ_INT8, rows, COLS, 0);
    check(quantize_sharded(&x_view, &y_view, &scale[0], &offset[0], range_type, combine_op, NULL));

    int *counts = allocate((size_t)ranks * sizeof *counts);
    int *starts = allocate((size_t)ranks * sizeof *starts);
    int8_t *gathered = allocate(rank == 0 ? (size_t)ROWS * COLS : 0);
    for (int i = 0; i < ranks; i++) {
        starts[i] = ROWS * i / ranks * COLS;
        counts[i] = ROWS * (i + 1) / ranks * COLS - starts[i];
    }
    MPI_Gatherv(y, (int)count, MPI_INT8_T, gathered, counts, starts, MPI_INT8_T, 0, MPI_COMM_WORLD);

    if (rank == 0) {
        float *all = allocate((size_t)ROWS * COLS * sizeof *all);
        int8_t *expected = allocate((size_t)ROWS * COLS);
        const npuq_tensor all_view = npuq_matrix(all, NPUQ_FLOAT32, ROWS, COLS, 0);
        const npuq_tensor expected_view = npuq_matrix(expected, NPUQ_INT8, ROWS, COLS, 0);
        const npuq_tensor scale_view = npuq_vector(&scale[1], NPUQ_FLOAT32, 1);
        const npuq_tensor offset_view = npuq_vector(&offset[1], NPUQ_FLOAT32, 1);

        for (size_t i = 0; i < (size_t)ROWS * COLS; i++) {
            all[i] = element(i, with_nan);
        }
        check(npuq_dynamic_quant_asymmetric(&all_view, NULL, NULL, NPUQ_PER_TENSOR, &expected_view, &scale_view,
                                            &offset_view, NULL));
        same = memcmp(gathered, expected, (size_t)ROWS * COLS) == 0 &&
               memcmp(&scale[0], &scale[1], sizeof *scale) == 0 && memcmp(&offset[0], &offset[1], sizeof *offset) == 0;
        (void)printf("%d rank%s, %s: scale %.9g, offset %.9g: %s\n", ranks, ranks == 1 ? "" : "s",
                     with_nan ? "with a NaN" : "finite", (double)scale[0], (double)offset[0],
                     same ? "the bits of one process" : "DIFFERENT from one process");
        free(all);
        free(expected);
    }
    free(x);
    free(y);
    free(counts);
    free(starts);
    free(gathered);
    return same;
}

int main(int argc, char **argv)
{
    int rank;
    int ranks;
    MPI_Datatype range_type;
    MPI_Op combine_op;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Type_contiguous(2, MPI_FLOAT, &range_type);
    MPI_Type_commit(&range_type);
    MPI_Op_create(combine, 1, &combine_op);

    const bool finite = run(rank, ranks, false, range_type, combine_op);
    const bool with_nan = run(rank, ranks, true, range_type, combine_op);

    MPI_Op_free(&combine_op);
    MPI_Type_free(&range_type);
    MPI_Finalize();
    return finite && with_nan ? 0 : 1;
}
