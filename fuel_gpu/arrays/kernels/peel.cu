// One round of the crowding peel over points linked along each axis. All arrays of axes are
// (axes, points); at an end of an axis a point is its own neighbour.
#define ACTIVE 0
#define LEAVING 1
#define GONE 2

// Points that come before all their neighbours, by distance, then by position, are to leave.
KERNEL peel_choose(GLOBAL const double *distance, GLOBAL const i64 *previous,
                   GLOBAL const i64 *following, GLOBAL u8 *state, i64 axes, i64 points)
{
    i64 point = PLACE;
    if (point >= points || state[point] != ACTIVE)
        return;
    double own = distance[point];
    for (i64 axis = 0; axis < axes; ++axis) {
        i64 before = previous[axis * points + point];
        i64 after = following[axis * points + point];
        double of_before = distance[before];
        double of_after = distance[after];
        if (of_before < own || (of_before == own && before < point))
            return;
        if (of_after < own || (of_after == own && after < point))
            return;
    }
    // Only this thread writes here, and no other reads it in this kernel.
    state[point] = LEAVING;
}

// No two points that leave are neighbours, so no link is written twice.
KERNEL peel_unlink(GLOBAL const double *distance, GLOBAL double *removed_at,
                   GLOBAL i64 *previous, GLOBAL i64 *following, GLOBAL u8 *state, i64 axes,
                   i64 points)
{
    i64 point = PLACE;
    if (point >= points || state[point] != LEAVING)
        return;
    removed_at[point] = distance[point];
    for (i64 axis = 0; axis < axes; ++axis) {
        i64 before = previous[axis * points + point];
        i64 after = following[axis * points + point];
        following[axis * points + before] = after;
        previous[axis * points + after] = before;
    }
    state[point] = GONE;
}

// Sums in the order of the axes, without fused operations: the same bits as NumPy's.
KERNEL peel_measure(GLOBAL double *distance, GLOBAL const i64 *previous,
                    GLOBAL const i64 *following, GLOBAL const double *values,
                    GLOBAL const double *ranges, GLOBAL const u8 *state, i64 axes, i64 points)
{
    i64 point = PLACE;
    if (point >= points || state[point] != ACTIVE)
        return;
    double total = 0.0;
    for (i64 axis = 0; axis < axes; ++axis) {
        i64 before = previous[axis * points + point];
        i64 after = following[axis * points + point];
        double gap = values[axis * points + after] - values[axis * points + before];
        total += gap / ranges[axis * points + point];
    }
    distance[point] = total;
}
