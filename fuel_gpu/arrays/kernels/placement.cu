// The placement DP along stretches of paths, one thread for a stretch (or path) in one scenario.
// Arrays are as in placement_steps.py; `index` is (4, positions): row, row before, edge, crossing.
#define MOST_SLOTS 16
#define U64_MAX (~(u64)0)

// Saturating, by the carry out of the top bit: from a comparison the OpenCL compiler makes an
// intrinsic that Oclgrind does not know.
DEVICE u64 plus(u64 a, u64 b)
{
    u64 sum = a + b;
    u64 carry = ((a & b) | ((a | b) & ~sum)) >> 63;
    return sum | (0 - carry);
}

// Advance `reached` by one row; its first slot that gives the minimum is the choice.
DEVICE void advance(u64 *reached, u8 *choice, GLOBAL const u64 *crossing_ns,
                    i64 crossing_scenarios, u8 otherwise, GLOBAL const u64 *own_ns,
                    i64 own_scenarios, int nothing_before, i64 slots)
{
    u64 next[MOST_SLOTS];
    for (i64 slot = 0; slot < slots; ++slot) {
        u64 best = 0;
        u8 from = 0;
        if (!nothing_before) {
            best = plus(reached[0], crossing_ns[slot * crossing_scenarios]);
            for (i64 before = 1; before < slots; ++before) {
                i64 way = (before * slots + slot) * crossing_scenarios;
                u64 via = plus(reached[before], crossing_ns[way]);
                if (via < best) {
                    best = via;
                    from = (u8)before;
                }
            }
            if (best == U64_MAX)
                from = otherwise;
        }
        next[slot] = plus(best, own_ns[slot * own_scenarios]);
        choice[slot] = from;
    }
    for (i64 slot = 0; slot < slots; ++slot)
        reached[slot] = next[slot];
}

// Follow stretches and keep every choice. `entered` tells whether entered_ns and is_first count and
// origin is wanted; masked_scenarios is the scenarios of first_available, 0 without it.
KERNEL placement_follow(GLOBAL const i64 *index, GLOBAL const i64 *start,
                        GLOBAL const i64 *length, GLOBAL const u64 *own_ns,
                        GLOBAL const u64 *crossing_ns, GLOBAL u8 *choice,
                        GLOBAL const u8 *first_available, GLOBAL const u64 *entered_ns,
                        GLOBAL const u8 *is_first, GLOBAL u64 *times, GLOBAL u8 *origin,
                        i64 positions, i64 stretches, i64 slots, i64 scenarios,
                        i64 crossing_scenarios, i64 masked_scenarios, i64 entered)
{
    i64 place = PLACE;
    if (place >= stretches * scenarios)
        return;
    i64 stretch = place / scenarios;
    i64 scenario = place % scenarios;
    u64 reached[MOST_SLOTS];
    u8 chosen[MOST_SLOTS];
    u8 came_from[MOST_SLOTS];
    u8 further[MOST_SLOTS];
    for (i64 slot = 0; slot < slots; ++slot) {
        reached[slot] = entered ? entered_ns[(slot * stretches + stretch) * scenarios + scenario] : 0;
        came_from[slot] = (u8)slot;
    }
    for (i64 step = 0; step < length[stretch]; ++step) {
        i64 position = start[stretch] + step;
        i64 row = index[position];
        i64 before = index[positions + position];
        i64 edge = index[2 * positions + position];
        i64 crossing = index[3 * positions + position];
        int nothing_before = step == 0 && (!entered || is_first[stretch]);
        u8 otherwise = 0;
        if (masked_scenarios > 0)
            otherwise = first_available[before * masked_scenarios + scenario % masked_scenarios];
        advance(reached, chosen,
                crossing_ns + crossing * slots * slots * crossing_scenarios
                    + scenario % crossing_scenarios,
                crossing_scenarios, otherwise, own_ns + row * slots * scenarios + scenario,
                scenarios, nothing_before, slots);
        for (i64 slot = 0; slot < slots; ++slot) {
            if (!nothing_before)
                choice[(edge * slots + slot) * scenarios + scenario] = chosen[slot];
            further[slot] = came_from[chosen[slot]];
        }
        for (i64 slot = 0; slot < slots; ++slot)
            came_from[slot] = further[slot];
    }
    for (i64 slot = 0; slot < slots; ++slot) {
        i64 at = (slot * stretches + stretch) * scenarios + scenario;
        times[at] = reached[slot];
        if (entered)
            origin[at] = came_from[slot];
    }
}

// The times through blocks of one length: one thread also for each slot before the block.
KERNEL placement_through(GLOBAL const i64 *index, GLOBAL const i64 *start,
                         GLOBAL const u64 *own_ns, GLOBAL const u64 *crossing_ns,
                         GLOBAL const u8 *is_first, GLOBAL u64 *through_ns, i64 positions,
                         i64 length, i64 blocks, i64 slots, i64 scenarios,
                         i64 crossing_scenarios)
{
    i64 place = PLACE;
    if (place >= slots * blocks * scenarios)
        return;
    i64 scenario = place % scenarios;
    i64 block = place / scenarios % blocks;
    i64 entry = place / scenarios / blocks;
    u64 reached[MOST_SLOTS];
    u8 chosen[MOST_SLOTS];
    for (i64 slot = 0; slot < slots; ++slot)
        reached[slot] = slot == entry ? 0 : U64_MAX;
    for (i64 step = 0; step < length; ++step) {
        i64 position = start[block] + step;
        i64 row = index[position];
        i64 crossing = index[3 * positions + position];
        advance(reached, chosen,
                crossing_ns + crossing * slots * slots * crossing_scenarios
                    + scenario % crossing_scenarios,
                crossing_scenarios, 0, own_ns + row * slots * scenarios + scenario, scenarios,
                step == 0 && is_first[block], slots);
    }
    for (i64 slot = 0; slot < slots; ++slot)
        through_ns[((slot * slots + entry) * blocks + block) * scenarios + scenario] =
            reached[slot];
}

// The times before each block of a path. Blocks are numbered by place along the path, then by
// path; at each place there are as many as first[place + 1] - first[place].
KERNEL placement_scan(GLOBAL const u64 *through_ns, GLOBAL const i64 *first,
                      GLOBAL u64 *before_ns, i64 places, i64 slots, i64 scenarios)
{
    i64 thread = PLACE;
    i64 path = thread / scenarios;
    i64 scenario = thread % scenarios;
    if (path >= first[1])
        return;
    i64 blocks = first[places];
    i64 inner_blocks = blocks - first[1];
    u64 reached[MOST_SLOTS];
    u64 next[MOST_SLOTS];
    for (i64 slot = 0; slot < slots; ++slot) {
        reached[slot] = 0;
        before_ns[(slot * blocks + path) * scenarios + scenario] = 0;
    }
    for (i64 place = 1; place < places && path < first[place + 1] - first[place]; ++place) {
        i64 inner = first[place] - first[1] + path;
        for (i64 slot = 0; slot < slots; ++slot) {
            u64 best = U64_MAX;
            for (i64 entry = 0; entry < slots; ++entry) {
                i64 way = ((slot * slots + entry) * inner_blocks + inner) * scenarios + scenario;
                u64 via = plus(reached[entry], through_ns[way]);
                best = via < best ? via : best;
            }
            next[slot] = best;
        }
        i64 block = first[place] + path;
        for (i64 slot = 0; slot < slots; ++slot) {
            reached[slot] = next[slot];
            before_ns[(slot * blocks + block) * scenarios + scenario] = next[slot];
        }
    }
}

// The slot at the end of each block of a path, from that at the end of the path.
KERNEL placement_block_ends(GLOBAL const u8 *origin, GLOBAL const i64 *first,
                            GLOBAL const u8 *last, GLOBAL u8 *ends, i64 places, i64 scenarios)
{
    i64 thread = PLACE;
    i64 path = thread / scenarios;
    i64 scenario = thread % scenarios;
    if (path >= first[1])
        return;
    i64 blocks = first[places];
    u8 at = last[thread];
    for (i64 place = places - 1; place >= 0; --place) {
        if (path >= first[place + 1] - first[place])
            continue;
        i64 block = first[place] + path;
        ends[block * scenarios + scenario] = at;
        at = origin[(at * blocks + block) * scenarios + scenario];
    }
}

// Follow the choices back from the ends of the stretches.
KERNEL placement_retrace(GLOBAL const i64 *index, GLOBAL const i64 *start,
                         GLOBAL const i64 *length, GLOBAL const u8 *choice,
                         GLOBAL const u8 *last, GLOBAL u8 *slot, i64 positions, i64 stretches,
                         i64 slots, i64 scenarios)
{
    i64 place = PLACE;
    if (place >= stretches * scenarios)
        return;
    i64 stretch = place / scenarios;
    i64 scenario = place % scenarios;
    u8 at = last[place];
    for (i64 step = length[stretch] - 1; step >= 0; --step) {
        i64 position = start[stretch] + step;
        slot[index[position] * scenarios + scenario] = at;
        if (step > 0)
            at = choice[(index[2 * positions + position] * slots + at) * scenarios + scenario];
    }
}
