// What the kernels call by one name, in CUDA C++.
typedef unsigned long long u64;
typedef long long i64;
typedef unsigned char u8;

#define KERNEL extern "C" __global__ void
#define GLOBAL
#define DEVICE static __device__
#define LOCAL_ARRAY(type, name, size) __shared__ type name[size]
#define PLACE_IN_GROUP ((i64)threadIdx.x)
#define GROUP_NUMBER ((i64)blockIdx.x)
#define PLACE ((i64)blockIdx.x * (i64)blockDim.x + (i64)threadIdx.x)
#define WAIT_FOR_GROUP __syncthreads()
