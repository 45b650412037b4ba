/* What an OpenCL device is measured with. Each build defines
 *   REAL  the elements' type         ACC   the type that sums are kept in
 *   OUT   the product's type         VEC   elements a load (1, 4, 8, 16)
 *   ROWS  rows of the product that a work-item of product_rows computes
 * and, where the types ask for it, USE_DOUBLE or USE_HALF. */
#ifdef USE_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef USE_HALF
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if VEC == 1
#define ACCV ACC
#define LOAD(p) (*(p))
#define STORE(v, p) (*(p) = (v))
#define TO_OUT(v) JOIN(convert_, OUT)(v)
#else
#define ACCV JOIN(ACC, VEC)
#define LOAD(p) JOIN(vload, VEC)(0, p)
#define STORE(v, p) JOIN(vstore, VEC)(v, 0, p)
#define TO_OUT(v) JOIN(convert_, JOIN(OUT, VEC))(v)
#endif
#define TO_ACC(v) JOIN(convert_, ACCV)(v)

__kernel void nothing(void) {}

/* dst = src; a work-item moves VEC elements. */
__kernel void stream(__global const REAL *restrict src, __global REAL *restrict dst)
{
    const size_t i = get_global_id(0) * VEC;
    STORE(LOAD(src + i), dst + i);
}

/* c = a b, all n by n, row-major, `pitch` elements from row to row. A work-item keeps ROWS x VEC sums in registers and reads
 * both factors from global memory: what CPUs, with their caches and wide vectors, do best. */
__kernel void product_rows(const int n, const int pitch, __global const REAL *restrict a,
                           __global const REAL *restrict b, __global OUT *restrict c)
{
    const int column = get_global_id(0) * VEC;
    const int row = get_global_id(1) * ROWS;
    ACCV sums[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        sums[r] = (ACCV)(0);
    for (int k = 0; k < n; k++) {
        const ACCV line = TO_ACC(LOAD(b + (size_t)k * pitch + column));
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            sums[r] += (ACCV)((ACC)a[(size_t)(row + r) * pitch + k]) * line;
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        STORE(TO_OUT(sums[r]), c + (size_t)(row + r) * pitch + column);
}

/* The same with both factors staged through local memory, as GPUs want it: a group of 16 x 16
 * work-items computes a block of 64 x 64, each of them 4 x 4 elements that lie 16 apart, so that
 * neighbours touch neighbouring addresses. */
#define BLOCK 64
#define DEPTH 16
__kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void product_tiles(const int n, const int pitch, __global const REAL *restrict a,
                   __global const REAL *restrict b, __global OUT *restrict c)
{
    __local ACC left[DEPTH][BLOCK + 1];
    __local ACC right[DEPTH][BLOCK];
    const int x = get_local_id(0), y = get_local_id(1);
    const int column = get_group_id(0) * BLOCK, row = get_group_id(1) * BLOCK;
    ACC sums[4][4];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            sums[i][j] = 0;
    for (int k = 0; k < n; k += DEPTH) {
        for (int i = 0; i < 4; i++) {
            left[x][y + 16 * i] = (ACC)a[(size_t)(row + y + 16 * i) * pitch + k + x];
            right[y][x + 16 * i] = (ACC)b[(size_t)(k + y) * pitch + column + x + 16 * i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int d = 0; d < DEPTH; d++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    sums[i][j] += left[d][y + 16 * i] * right[d][x + 16 * j];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            c[(size_t)(row + y + 16 * i) * pitch + column + x + 16 * j] =
                JOIN(convert_, OUT)(sums[i][j]);
}
