/*
 * What can go wrong. Each function does one thing if the world is such that it can be done.
 */
#include "sim/fault.h"

const char *const fault_names[FAULTS] = {
    [FAULT_KILL] = "SIGKILL",
    [FAULT_KILL_TORN] = "SIGKILL between two stores to the page",
    [FAULT_STOP] = "SIGSTOP, SIGCONT",
    [FAULT_TERM_RETURN] = "SIGTERM, workerIds given back",
    [FAULT_TERM_KEEP] = "SIGTERM, workerIds kept in the page",
    [FAULT_UPGRADE] = "SIGUSR2: another program takes over in place",
    [FAULT_PAGE_LOST] = "page lost",
    [FAULT_PAGE_COPIED] = "page copied to another node",
    [FAULT_PAGE_OLD] = "old copy of the page put in its place",
    [FAULT_PAGE_BACK] = "page put back in place as it was, the coordinator away or not",
    [FAULT_PAGE_CUT] = "page truncated",
    [FAULT_PAGE_FLIP] = "bit of the page flipped",
    [FAULT_PAGE_FULL] = "no new generation of the page can be had",
    [FAULT_REBOOT] = "reboot",
    [FAULT_CLOCK_SMALL] = "clock stepped a little",
    [FAULT_CLOCK_EDGE] = "clock set to an edge of a range",
    [FAULT_CLOCK_YEARS] = "clock stepped by up to 10 years",
    [FAULT_CLOCK_RIGHT] = "clock put right",
    [FAULT_CLOCK_ALL_BACK] = "all clocks back by 1 s",
    [FAULT_REDIS_EMPTY] = "coordinator restarted without its data",
    [FAULT_REDIS_SUFFIX] = "coordinator restarted without its last writes",
    [FAULT_REDIS_WHOLE] = "coordinator restarted with all data",
    [FAULT_REDIS_OLD] = "old backup of the coordinator restored",
    [FAULT_REDIS_BEFORE] = "pool made again under another name, then its old data restored",
    [FAULT_REDIS_FLUSH] = "FLUSHALL, or file deleted",
    [FAULT_REDIS_EVICT] = "hash evicted, queue and index left",
    [FAULT_REDIS_FAILOVER] = "failover to a lagging replica",
    [FAULT_REDIS_IN_PLACE] = "rewound under the same fingerprint, where a holder is heard next",
    [FAULT_FILE_IN_PLACE] = "SQLite file set back in place",
    [FAULT_GROUP_CUT] = "replica cut off from its master",
    [FAULT_GROUP_SPLIT] = "split brain: replica promoted while its master goes on",
    [FAULT_GROUP_FAILOVER] = "failover: replica promoted, its master down",
    [FAULT_GROUP_LACKS] = "failover with acknowledged writes missing on the new master",
    [FAULT_GROUP_TWICE] = "replica promoted twice",
    [FAULT_GROUP_STALE] = "replica of a deposed master promoted",
    [FAULT_GROUP_FOLLOW] = "replica follows the new master",
    [FAULT_GROUP_DEPOSED] = "old master becomes a replica, its own writes lost",
    [FAULT_GROUP_RESTART] = "replica restarted",
    [FAULT_GROUP_SHORT] = "too few replicas acknowledge",
    [FAULT_GROUP_OLD_SHORT] = "too few replicas acknowledge a deposed master",
    [FAULT_GROUP_OLD_COUNTS] = "answer of a deposed master counts",
    [FAULT_GROUP_MEANWHILE] = "something else happened during a wait for replicas",
    [FAULT_REDIS_CLOCK] = "coordinator's clock stepped within S",
    [FAULT_REDIS_CLOCK_WILD] =
        "coordinator's clock wrong by up to years, where nothing is ever lost",
    [FAULT_REDIS_CLOCK_DAY] = "coordinator's clock a day ahead while holders renew",
    [FAULT_REDIS_CLOCK_AHEAD] = "coordinator's clock ahead with nodes', and right by a word",
    [FAULT_REDIS_DOWN] = "coordinator down for 1 s to hours",
    [FAULT_QUEUE_DOUBLED] = "queue entry doubled",
    [FAULT_QUEUE_LOST] = "queue lost",
    [FAULT_INDEX_LOST] = "index of held workerIds lost",
    [FAULT_OP_SETTLE] = "operator shortens settle, or makes it longer",
    [FAULT_OP_WORD] = "operator says that nothing was lost, which is so",
    [FAULT_BET_WON] = "older data put in place, and all holders heard within a short settle",
    [FAULT_INIT_SAME] = "init --after-loss with the old uuid",
    [FAULT_INIT_OTHER] = "init --after-loss with a new uuid",
    [FAULT_INIT_FRESH] = "init --fresh by mistake, where a holder is heard next",
    [FAULT_INIT_STRANGER] = "the same, where a holder is heard once somebody has claimed",
    [FAULT_OP_EVICT] = "operator evicts a workerId",
    [FAULT_OP_REPAIR] = "operator repairs queue and index",
    [FAULT_OP_CLOSE] = "operator closes the pool",
    [FAULT_OP_OPEN] = "operator opens a closed pool",
    [FAULT_WRONG_POOL] = "node talks to another pool",
    [FAULT_PARTITION] = "node cut off",
    [FAULT_NET_LOST_REQUEST] = "request lost",
    [FAULT_NET_LOST_REPLY] = "reply lost",
    [FAULT_NET_DOUBLED] = "request doubled",
    [FAULT_NET_LATE] = "request run again much later",
    [FAULT_LIFE_NO_DIR] = "node without state_dir",
    [FAULT_LIFE_EPOCH_END] = "end of the epoch",
    [FAULT_LIFE_FLEET] = "dozens of nodes",
    [FAULT_LIFE_REPLICAS] = "coordinator with replicas",
    [FAULT_LIFE_AUTO_INIT] = "sidecars make a missing SQLite pool",
    [FAULT_LIFE_FIXED] = "static:N",
    [FAULT_FIXED_PAGE] = "static: page lost, cut, of before or of another node, later than all IDs",
    [FAULT_FIXED_N] = "static: another N",
    [FAULT_FIXED_REFUSED] = "static: a page that cannot be read is refused, and removed",
};

/* ---- the network ----------------------------------------------------------------------------- */

static bool wrong_pool(struct world *w)
{
    struct node *n = world_some_node(w);
    if (!w->other)
        return false;
    n->wrong_pool = !n->wrong_pool;
    world_note(w, "node %u talks to the %s pool", node_number(w, n),
               n->wrong_pool ? "other" : "right");
    return true;
}

static bool partition(struct world *w)
{
    struct node *n = world_some_node(w);
    n->partitioned = !n->partitioned;
    return false; /* counted when a request is lost */
}

/* ---- which, and how often -------------------------------------------------------------------- */

static const struct {
    bool (*run)(struct world *); /* NULL: it is in the network, or a setting */
    uint8_t weight;
} faults[FAULTS] = {
    [FAULT_KILL] = {fault_kill_one, 30},
    [FAULT_KILL_TORN] = {fault_kill_torn, 20},
    [FAULT_STOP] = {fault_stop_one, 20},
    [FAULT_TERM_RETURN] = {fault_term_return, 15},
    [FAULT_TERM_KEEP] = {fault_term_keep, 10},
    [FAULT_UPGRADE] = {fault_upgrade, 25},
    [FAULT_PAGE_LOST] = {fault_page_lost, 20},
    [FAULT_PAGE_COPIED] = {fault_page_copied, 30},
    [FAULT_PAGE_OLD] = {fault_page_old, 20},
    [FAULT_PAGE_BACK] = {fault_page_back, 30},
    [FAULT_PAGE_CUT] = {fault_page_cut, 5},
    [FAULT_PAGE_FLIP] = {fault_page_flip, 10},
    [FAULT_PAGE_FULL] = {NULL, 1},
    [FAULT_REBOOT] = {fault_reboot, 10},
    [FAULT_CLOCK_SMALL] = {fault_clock_small, 20},
    [FAULT_CLOCK_EDGE] = {fault_clock_edge, 30},
    [FAULT_CLOCK_YEARS] = {fault_clock_years, 8},
    [FAULT_CLOCK_RIGHT] = {fault_clock_right, 40},
    [FAULT_CLOCK_ALL_BACK] = {fault_clock_all_back, 4},
    [FAULT_REDIS_EMPTY] = {fault_redis_empty, 8},
    [FAULT_REDIS_SUFFIX] = {fault_redis_suffix, 15},
    [FAULT_REDIS_WHOLE] = {fault_redis_whole, 10},
    [FAULT_REDIS_OLD] = {fault_redis_old, 15},
    [FAULT_REDIS_BEFORE] = {fault_redis_before, 5},
    [FAULT_REDIS_FLUSH] = {fault_redis_flush, 6},
    [FAULT_REDIS_EVICT] = {fault_redis_evict, 4},
    [FAULT_REDIS_FAILOVER] = {fault_redis_failover, 15},
    [FAULT_REDIS_IN_PLACE] = {fault_redis_in_place, 15},
    [FAULT_FILE_IN_PLACE] = {fault_file_in_place, 15},
    [FAULT_GROUP_CUT] = {failover_cut, 30},
    [FAULT_GROUP_SPLIT] = {failover_split, 20},
    [FAULT_GROUP_FAILOVER] = {failover_clean, 15},
    [FAULT_GROUP_FOLLOW] = {failover_follow, 60},
    [FAULT_GROUP_RESTART] = {failover_restart, 5},
    [FAULT_REDIS_CLOCK] = {fault_redis_clock, 20},
    [FAULT_REDIS_CLOCK_WILD] = {fault_redis_clock_wild, 6},
    [FAULT_REDIS_CLOCK_DAY] = {fault_redis_clock_day, 30},
    [FAULT_REDIS_CLOCK_AHEAD] = {fault_redis_clock_ahead, 30},
    [FAULT_REDIS_DOWN] = {fault_redis_down, 5},
    [FAULT_QUEUE_DOUBLED] = {fault_queue_doubled, 20},
    [FAULT_QUEUE_LOST] = {fault_queue_lost, 3},
    [FAULT_INDEX_LOST] = {fault_index_lost, 3},
    [FAULT_OP_SETTLE] = {fault_op_settle, 15},
    [FAULT_OP_WORD] = {fault_op_word, 40},
    [FAULT_INIT_SAME] = {fault_init_same, 30},
    [FAULT_INIT_OTHER] = {fault_init_other, 15},
    [FAULT_INIT_FRESH] = {fault_init_fresh, 15},
    [FAULT_INIT_STRANGER] = {fault_init_stranger, 60},
    [FAULT_OP_EVICT] = {fault_op_evict, 10},
    [FAULT_OP_REPAIR] = {fault_op_repair, 6},
    [FAULT_OP_CLOSE] = {fault_op_close, 2},
    [FAULT_OP_OPEN] = {fault_op_open, 60},
    [FAULT_WRONG_POOL] = {wrong_pool, 5},
    [FAULT_PARTITION] = {partition, 10},
    [FAULT_FIXED_PAGE] = {fault_fixed_page, 0},
    [FAULT_FIXED_N] = {fault_fixed_n, 0},
    [FAULT_NET_LOST_REQUEST] = {NULL, 1},
    [FAULT_NET_LOST_REPLY] = {NULL, 1},
    [FAULT_NET_DOUBLED] = {NULL, 1},
    [FAULT_NET_LATE] = {NULL, 1},
};

static bool of_group(enum fault f)
{
    return f >= FAULT_GROUP_CUT && f <= FAULT_GROUP_MEANWHILE;
}

/* A part of all faults in each schedule: many at once hide each other. */
void fault_draw_weights(struct world *w)
{
    unsigned percent = (unsigned)world_between(w, 10, 90);
    for (unsigned f = 0; f < FAULTS; f++)
        w->set.weight[f] = world_chance(w, percent) && !of_group(f) ? faults[f].weight : 0;
    if (w->set.weight[FAULT_INIT_OTHER] == 0)
        w->set.weight[FAULT_INIT_SAME] = faults[FAULT_INIT_SAME].weight;
    w->set.weight[FAULT_CLOCK_RIGHT] = faults[FAULT_CLOCK_RIGHT].weight;
}

/* Loss, late messages and processes that live on, while all clocks are within S: what the floors
 * and the re-assertion are for. */
void fault_draw_rewinds(struct world *w)
{
    static const enum fault about[] = {
        FAULT_KILL,
        FAULT_STOP,
        FAULT_TERM_RETURN,
        FAULT_TERM_KEEP,
        FAULT_PAGE_LOST,
        FAULT_PAGE_COPIED,
        FAULT_REDIS_SUFFIX,
        FAULT_REDIS_SUFFIX,
        FAULT_REDIS_OLD,
        FAULT_REDIS_BEFORE,
        FAULT_REDIS_WHOLE,
        FAULT_REDIS_FAILOVER,
        FAULT_REDIS_IN_PLACE,
        FAULT_REDIS_CLOCK,
        FAULT_REDIS_EMPTY,
        FAULT_OP_EVICT,
        FAULT_NET_LOST_REPLY,
        FAULT_REDIS_CLOCK_DAY,
        FAULT_REDIS_CLOCK_AHEAD,
        FAULT_OP_SETTLE,
        FAULT_OP_WORD,
        FAULT_NET_LATE,
        FAULT_NET_DOUBLED,
        FAULT_CLOCK_RIGHT,
        FAULT_CLOCK_RIGHT,
        FAULT_FILE_IN_PLACE,
    };
    for (unsigned i = 0; i < sizeof about / sizeof *about; i++)
        if (world_chance(w, 60))
            w->set.weight[about[i]] = faults[about[i]].weight;
    w->set.weight[FAULT_REDIS_SUFFIX] = faults[FAULT_REDIS_SUFFIX].weight;
    w->set.weight[FAULT_PARTITION] *= 2;
    w->set.weight[FAULT_OP_EVICT] *= 2;
    w->set.weight[FAULT_INIT_SAME] = faults[FAULT_INIT_SAME].weight;
}

/* The group's faults come on top of the others, or, half of the time, of a few of them. Not with
 * them: a clock that is wrong, since much is lost; and what a single coordinator's group does. */
void fault_draw_failovers(struct world *w)
{
    static const enum fault besides[] = {FAULT_KILL,         FAULT_TERM_RETURN,   FAULT_CLOCK_RIGHT,
                                         FAULT_REDIS_SUFFIX, FAULT_REDIS_CLOCK,   FAULT_OP_EVICT,
                                         FAULT_NET_LATE,     FAULT_NET_LOST_REPLY};
    uint8_t *weight = w->set.weight;
    if (world_chance(w, 50)) {
        memset(weight, 0, sizeof w->set.weight);
        for (unsigned i = 0; i < sizeof besides / sizeof *besides; i++)
            if (world_chance(w, 50))
                weight[besides[i]] = faults[besides[i]].weight;
    }
    for (unsigned f = 0; f < FAULTS; f++)
        if (of_group(f))
            weight[f] = faults[f].weight;
    weight[FAULT_REDIS_FAILOVER] = weight[FAULT_REDIS_CLOCK_WILD] = weight[FAULT_INIT_FRESH] = 0;
    weight[FAULT_INIT_STRANGER] = weight[FAULT_REDIS_BEFORE] = 0;
    weight[FAULT_INIT_SAME] = faults[FAULT_INIT_SAME].weight;
}

void fault_do(struct world *w, enum fault f)
{
    if (faults[f].run(w))
        world_count(w, f);
    ledger_pages_changed();
}

void fault_heal_pool(struct world *w)
{
    enum fault f =
        w->set.weight[FAULT_INIT_OTHER] && world_chance(w, 40) ? FAULT_INIT_OTHER : FAULT_INIT_SAME;
    if (faults[f].run(w))
        world_count(w, f);
}

void fault_step(struct world *w)
{
    uint64_t sum = 0;
    for (unsigned f = 0; f < FAULTS; f++)
        sum += faults[f].run ? w->set.weight[f] : 0;
    uint64_t at = world_draw(w, sum);
    for (unsigned f = 0; f < FAULTS; f++) {
        uint64_t weight = faults[f].run ? w->set.weight[f] : 0;
        if (at < weight) {
            fault_do(w, (enum fault)f);
            return;
        }
        at -= weight;
    }
}
