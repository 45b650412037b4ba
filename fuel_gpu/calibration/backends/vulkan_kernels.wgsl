// What an adapter is measured with. The lines put before it define
//   REAL  the elements' type        SUM  the type that sums are kept in

override n = 0u;      // rows and columns of the matrices
override pitch = 0u;  // from a row to the next, in vectors of 4

@compute @workgroup_size(1)
fn nothing() {}

// target = source. Groups are counted along x, then y, since one axis may be too short for all.

@group(0) @binding(0) var<storage, read> source_1: array<REAL>;
@group(0) @binding(1) var<storage, read_write> target_1: array<REAL>;
@group(0) @binding(0) var<storage, read> source_4: array<vec4<REAL>>;
@group(0) @binding(1) var<storage, read_write> target_4: array<vec4<REAL>>;

const LINE = 256u;  // invocations of a group

@compute @workgroup_size(LINE)
fn stream_1(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = id.y * groups.x * LINE + id.x;
    if i < arrayLength(&source_1) {
        target_1[i] = source_1[i];
    }
}

@compute @workgroup_size(LINE)
fn stream_4(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = id.y * groups.x * LINE + id.x;
    if i < arrayLength(&source_4) {
        target_4[i] = source_4[i];
    }
}

@compute @workgroup_size(LINE)
fn stream_4_by_4(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let i = (group.y * groups.x + group.x) * 4u * LINE + lane;
    if i + 3u * LINE < arrayLength(&source_4) {
        target_4[i] = source_4[i];
        target_4[i + LINE] = source_4[i + LINE];
        target_4[i + 2u * LINE] = source_4[i + 2u * LINE];
        target_4[i + 3u * LINE] = source_4[i + 3u * LINE];
    }
}

// result = left right, all n by n, row-major. An invocation computes blocks of 4 x 4: with rows of
// `right` as the columns of one matrix and pieces of rows of `left` as those of another, their
// product has rows of `result` as its columns.

@group(0) @binding(0) var<storage, read> left: array<vec4<REAL>>;
@group(0) @binding(1) var<storage, read> right: array<vec4<REAL>>;
@group(0) @binding(2) var<storage, read_write> result: array<vec4<REAL>>;

alias Sum4 = vec4<SUM>;
alias Block = mat4x4<SUM>;

fn left_block(row: u32, k: u32) -> Block {
    let i = row * pitch + k;
    return Block(Sum4(left[i]), Sum4(left[i + pitch]), Sum4(left[i + 2u * pitch]), Sum4(left[i + 3u * pitch]));
}

fn right_block(k: u32, column: u32) -> Block {
    let i = 4u * k * pitch + column;
    return Block(Sum4(right[i]), Sum4(right[i + pitch]), Sum4(right[i + 2u * pitch]), Sum4(right[i + 3u * pitch]));
}

fn store(row: u32, column: u32, block: Block) {
    let i = row * pitch + column;
    result[i] = vec4<REAL>(block[0]);
    result[i + pitch] = vec4<REAL>(block[1]);
    result[i + 2u * pitch] = vec4<REAL>(block[2]);
    result[i + 3u * pitch] = vec4<REAL>(block[3]);
}

// A group works on 8 rows, so that all its invocations read the same of `left`.
@compute @workgroup_size(32)
fn product_rows(@builtin(global_invocation_id) id: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y * 8u;
    var upper = Block();
    var lower = Block();
    for (var k = 0u; k < n / 4u; k++) {
        let factor = right_block(k, id.x);
        upper += factor * left_block(row, k);
        lower += factor * left_block(row + 4u, k);
    }
    store(row, id.x, upper);
    store(row + 4u, id.x, lower);
}

// The same with both factors staged through workgroup memory.
var<workgroup> left_tile: array<Sum4, 256>;
var<workgroup> right_tile: array<Sum4, 256>;

// 4 x 4 elements of `left_tile`, whose rows are `width` vectors long
fn left_staged(row: u32, k: u32, width: u32) -> Block {
    let i = row * width + k;
    return Block(left_tile[i], left_tile[i + width], left_tile[i + 2u * width], left_tile[i + 3u * width]);
}

fn right_staged(k: u32, column: u32, width: u32) -> Block {
    let i = 4u * k * width + column;
    return Block(right_tile[i], right_tile[i + width], right_tile[i + 2u * width], right_tile[i + 3u * width]);
}

// 16 x 16 invocations compute 64 x 64 elements, 16 of the sum's terms at a time.
@compute @workgroup_size(16, 16)
fn product_tile_64(
    @builtin(local_invocation_id) at: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
) {
    let row = group.y * 64u;
    let column = group.x * 16u;
    var sums = Block();
    for (var k = 0u; k < n / 4u; k += 4u) {
        left_tile[lane] = Sum4(left[(row + lane / 4u) * pitch + k + lane % 4u]);
        right_tile[lane] = Sum4(right[(4u * k + lane / 16u) * pitch + column + lane % 16u]);
        workgroupBarrier();
        for (var d = 0u; d < 4u; d++) {
            sums += right_staged(d, at.x, 16u) * left_staged(4u * at.y, d, 4u);
        }
        workgroupBarrier();
    }
    store(row + 4u * at.y, column + at.x, sums);
}

// 16 x 16 invocations compute 128 x 128 elements, 8 of the sum's terms at a time.
@compute @workgroup_size(16, 16)
fn product_tile_128(
    @builtin(local_invocation_id) at: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
) {
    let row = group.y * 128u;
    let column = group.x * 32u;
    var sums_00 = Block();
    var sums_01 = Block();
    var sums_10 = Block();
    var sums_11 = Block();
    for (var k = 0u; k < n / 4u; k += 2u) {
        left_tile[lane] = Sum4(left[(row + lane / 2u) * pitch + k + lane % 2u]);
        right_tile[lane] = Sum4(right[(4u * k + lane / 32u) * pitch + column + lane % 32u]);
        workgroupBarrier();
        for (var d = 0u; d < 2u; d++) {
            let upper = left_staged(4u * at.y, d, 2u);
            let lower = left_staged(64u + 4u * at.y, d, 2u);
            let near = right_staged(d, at.x, 32u);
            let far = right_staged(d, 16u + at.x, 32u);
            sums_00 += near * upper;
            sums_01 += far * upper;
            sums_10 += near * lower;
            sums_11 += far * lower;
        }
        workgroupBarrier();
    }
    let last_row = row + 64u + 4u * at.y;
    let last_column = column + 16u + at.x;
    store(row + 4u * at.y, column + at.x, sums_00);
    store(row + 4u * at.y, last_column, sums_01);
    store(last_row, column + at.x, sums_10);
    store(last_row, last_column, sums_11);
}
