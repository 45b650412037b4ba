// What the kernels call by one name, in OpenCL C.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
typedef ulong u64;
typedef long i64;
typedef uchar u8;

#define KERNEL __kernel void
#define GLOBAL __global
#define DEVICE static
#define LOCAL_ARRAY(type, name, size) __local type name[size]
#define PLACE_IN_GROUP ((i64)get_local_id(0))
#define GROUP_NUMBER ((i64)get_group_id(0))
#define PLACE ((i64)get_global_id(0))
#define WAIT_FOR_GROUP barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
