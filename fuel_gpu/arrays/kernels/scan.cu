// Running minimum or union along one axis of a (outer, length, inner) array, in place.
#define SCAN_GROUP 256
#define MINIMUM 0

DEVICE u64 combine(u64 a, u64 b, int operation)
{
    if (operation == MINIMUM)
        return a < b ? a : b;
    return a | b;
}

// One thread a line: for short lines, or many of them.
KERNEL scan_by_thread(GLOBAL u64 *values, i64 lines, i64 length, i64 inner, int operation)
{
    i64 line = PLACE;
    if (line >= lines)
        return;
    i64 at = (line / inner) * length * inner + line % inner;
    u64 running = values[at];
    for (i64 step = 1; step < length; ++step) {
        at += inner;
        running = combine(running, values[at], operation);
        values[at] = running;
    }
}

// One group of SCAN_GROUP threads a line: for long ones.
KERNEL scan_by_group(GLOBAL u64 *values, i64 length, i64 inner, int operation)
{
    LOCAL_ARRAY(u64, tile, SCAN_GROUP);
    i64 line = GROUP_NUMBER;
    i64 place = PLACE_IN_GROUP;
    i64 base = (line / inner) * length * inner + line % inner;
    u64 neutral = operation == MINIMUM ? ~(u64)0 : (u64)0;
    u64 carried = neutral;
    for (i64 start = 0; start < length; start += SCAN_GROUP) {
        i64 step = start + place;
        tile[place] = step < length ? values[base + step * inner] : neutral;
        WAIT_FOR_GROUP;
        for (int distance = 1; distance < SCAN_GROUP; distance *= 2) {
            u64 before = place >= distance ? tile[place - distance] : neutral;
            WAIT_FOR_GROUP;
            tile[place] = combine(tile[place], before, operation);
            WAIT_FOR_GROUP;
        }
        if (step < length)
            values[base + step * inner] = combine(carried, tile[place], operation);
        carried = combine(carried, tile[SCAN_GROUP - 1], operation);
        WAIT_FOR_GROUP;
    }
}
