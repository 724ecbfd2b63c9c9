"""The moves of the Markov chain over dendrograms, on plain arrays (method 3).

One source, two engines: run as it stands this is the Python twin that the tests compare with; `hrg_chain.py` compiles
the very same functions with numba. So they take arrays and numbers only, draw no random numbers of their own, and
allocate nothing inside a loop. The two engines give the same bits.

A tree over `n` zones has leaves `0..n-1` and internal nodes `n..2n-2`; a move keeps every node's number, and the root
stays `2n-2`. Three arrays hold the chain's state (`docs/adr/0002-sums-by-zone.md` says why these three):

`tree[v]`   left child, right child, parent and number of leaves of node `v`.
`reach[v]`  `reach[v, z]` is the sum of distances from zone `z` to the leaves of node `v`: the method's `S[v, z]`.
`near[r]`   for a non-root internal node `r` with children `A`, `B` (left, right) and sibling `C`: `S[A,C]`, `S[B,C]`
            and `S[A,B]`, all that a proposal at `r` looks up. The root has only the third.

Invariant: each is exact for the current tree up to rounding. Sums are always added up from those of smaller parts,
never adjusted by a difference, so rounding does not pile up over millions of moves.
"""

import math

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.uint64]

COMPILED = ("add_reach", "sum_between", "look_around", "tree_loss", "plant", "walk", "average_linkage")
"""The functions below, each after those it calls."""

LEFT, RIGHT, PARENT, SIZE = 0, 1, 2, 3
INNER = 2  # the column of `near` that holds S[A,B]
BETTER = 1 - 1e-12  # relative: what is smaller than this is rounding, and losses may themselves be small
STALE = -1.0  # in place of S[A,C]: the neighbourhood changed, look again when a proposal next comes here


def plant(merges: Ints, tree: Ints, reach: Floats, near: Floats, stack: Ints) -> None:
    """Grow the tree of `merges`; `reach` must hold the distances in its first `n` rows."""
    zones = merges.shape[0] + 1
    for zone in range(zones):
        tree[zone, LEFT] = -1
        tree[zone, RIGHT] = -1
        tree[zone, SIZE] = 1
    tree[2 * zones - 2, PARENT] = -1
    for i in range(zones - 1):
        node, first, second = zones + i, merges[i, 0], merges[i, 1]
        tree[node, LEFT] = first
        tree[node, RIGHT] = second
        tree[first, PARENT] = node
        tree[second, PARENT] = node
        tree[node, SIZE] = tree[first, SIZE] + tree[second, SIZE]
        add_reach(node, first, second, reach)
        near[node, LEFT] = STALE
        near[node, INNER] = sum_between(first, second, tree, reach, stack)


def add_reach(node: int, first: int, second: int, reach: Floats) -> None:
    """Write `reach[node]` from the node's two children."""
    for zone in range(reach.shape[1]):
        reach[node, zone] = reach[first, zone] + reach[second, zone]


def sum_between(u: int, v: int, tree: Ints, reach: Floats, stack: Ints) -> float:
    """`S[u,v]` for disjoint `u` and `v`: what the larger one's `reach` says of each leaf of the smaller one."""
    if tree[u, SIZE] < tree[v, SIZE]:
        u, v = v, u
    total = 0.0
    stack[0] = v
    height = 1
    while height > 0:
        height -= 1
        node = stack[height]
        if tree[node, LEFT] < 0:
            total += reach[u, node]
        else:
            stack[height] = tree[node, LEFT]
            stack[height + 1] = tree[node, RIGHT]
            height += 2
    return total


def look_around(r: int, tree: Ints, reach: Floats, near: Floats, stack: Ints) -> None:
    """Write `S[A,C]` and `S[B,C]` of the non-root internal node `r`."""
    w = tree[r, PARENT]
    c = tree[w, LEFT] + tree[w, RIGHT] - r
    near[r, LEFT] = sum_between(tree[r, LEFT], c, tree, reach, stack)
    near[r, RIGHT] = sum_between(tree[r, RIGHT], c, tree, reach, stack)


def tree_loss(tree: Ints, near: Floats) -> float:
    """`L(T) = Σ_r d_r`."""
    zones = (tree.shape[0] + 1) // 2
    loss = 0.0
    for node in range(zones, 2 * zones - 1):
        loss += near[node, INNER] / (tree[tree[node, LEFT], SIZE] * tree[tree[node, RIGHT], SIZE])
    return loss


def walk(  # noqa: PLR0917 (compiled code has no keywords; one caller)
    bits: Bits,
    uniforms: Floats,
    temperature: float,
    best: float,
    tree: Ints,
    reach: Floats,
    near: Floats,
    stack: Ints,
    best_tree: Ints,
    skips_equal: bool,  # noqa: FBT001
) -> tuple[int, float, int]:
    """Propose one move for each of `bits`; the state changes in place.

    Returns the number of moves accepted, the best loss seen so far and the move that last improved it (-1: none here).
    `best_tree` holds the tree of that loss.
    """
    zones = (tree.shape[0] + 1) // 2
    choices = np.uint64(zones - 2)
    loss = tree_loss(tree, near)
    accepted, improved_at = 0, -1
    # A best tree is copied only when the chain is about to leave it: a descent then costs one copy, not one a step.
    unsaved = False
    if loss < best * BETTER:
        best, improved_at, unsaved = loss, 0, True
    for move in range(bits.shape[0]):
        # The 31 high bits choose the non-root internal node r, the lowest bit between α and β.
        r = zones + np.int64(((bits[move] >> np.uint64(33)) * choices) >> np.uint64(31))
        kept = np.int64(bits[move] & np.uint64(1))
        a, b = tree[r, kept], tree[r, 1 - kept]  # β is α with the names of A and B exchanged
        w = tree[r, PARENT]
        c = tree[w, LEFT] + tree[w, RIGHT] - r
        if near[r, LEFT] == STALE:
            look_around(r, tree, reach, near, stack)
        s_ab, s_ac, s_bc = near[r, INNER], near[r, kept], near[r, 1 - kept]
        if skips_equal and s_ab == 0.0 and s_ac == 0.0 and s_bc == 0.0:
            continue  # among equal zones every tree is as good: a search need not pay for the move, the law needs it
        n_a, n_b, n_c = tree[a, SIZE], tree[b, SIZE], tree[c, SIZE]
        before = s_ab / (n_a * n_b) + (s_ac + s_bc) / ((n_a + n_b) * n_c)
        after = s_ac / (n_a * n_c) + (s_ab + s_bc) / ((n_a + n_c) * n_b)
        rise = after - before
        if rise > 0.0 and uniforms[move] >= math.exp(-rise / temperature):
            continue
        if unsaved and rise > 0.0:
            best_tree[:] = tree
            unsaved = False
        # ((A,B),C) becomes ((A,C),B): r stays under w with other leaves, B moves up to be its sibling.
        tree[r, LEFT] = a
        tree[r, RIGHT] = c
        tree[c, PARENT] = r
        tree[w, LEFT] = r
        tree[w, RIGHT] = b
        tree[b, PARENT] = w
        tree[r, SIZE] = n_a + n_c
        add_reach(r, a, c, reach)
        near[r, LEFT] = s_ab
        near[r, RIGHT] = s_bc
        near[r, INNER] = s_ac
        near[w, INNER] = s_ab + s_bc
        # The nodes whose children or sibling are now others. w's own sibling sees the same leaves in w as before.
        near[w, LEFT] = STALE
        near[a, LEFT] = STALE
        near[b, LEFT] = STALE
        near[c, LEFT] = STALE
        loss += rise
        accepted += 1
        if loss < best * BETTER:
            best, improved_at, unsaved = loss, move, True
    if unsaved:
        best_tree[:] = tree
    return accepted, best, improved_at


def average_linkage(  # noqa: PLR0912, PLR0917 (as above; its parts make no sense alone)
    means: Floats,
    merges: Ints,
    node: Ints,
    size: Ints,
    chain: Ints,
    place: Ints,
    level: bool,  # noqa: FBT001
) -> None:
    """Fill `merges` with the average-linkage tree, by chains of nearest neighbours: O(n²) in all.

    Average linkage always joins the two clusters of least `d_r`: greedy for the same loss, and so a good start.
    Equally near clusters can be joined in any order, and not all orders come out the same. With `level` the smaller one
    wins, so that equal zones make a level tree and not a ladder; without, the one with the lower number, as in SciPy.

    `means` starts as the distances and is used up; `node`, `size`, `chain`, `place` are scratch of n + 1 places each.
    A cluster lives in the slot of one of its zones; `size` 0 marks a slot that was merged away. `place` is where in the
    chain a cluster stands, -1 for nowhere.
    """
    zones = means.shape[0]
    for zone in range(zones):
        node[zone] = zone
        size[zone] = 1
        place[zone] = -1
    length, first_alive = 0, 0
    for i in range(zones - 1):
        if length == 0:
            while size[first_alive] == 0:
                first_alive += 1
            chain[0] = first_alive
            place[first_alive] = 0
            length = 1
        while True:
            top = chain[length - 1]
            # The previous link wins ties, or clusters equally far apart would chase each other for ever.
            nearest, least = -1, np.inf
            if length > 1:
                nearest = chain[length - 2]
                least = means[top, nearest]
            for other in range(first_alive, zones):
                if size[other] > 0 and other != top:
                    apart = means[top, other]
                    if apart < least or (level and apart == least and size[other] < size[nearest]):
                        nearest, least = other, apart
            if length > 1 and nearest == chain[length - 2]:
                break
            # A mean of equal distances may round below them, and then a chain can come back to an earlier link of its
            # own: go on from there. What was linked since the last merge never repeats, so this ends.
            while place[nearest] >= 0 and length > place[nearest]:
                length -= 1
                if chain[length] != nearest:
                    place[chain[length]] = -1
            chain[length] = nearest
            place[nearest] = length
            length += 1
        length -= 2
        place[top] = -1
        place[nearest] = -1
        gone, slot = min(top, nearest), max(top, nearest)
        merges[i, 0] = node[gone]
        merges[i, 1] = node[slot]
        node[slot] = zones + i
        n_gone, n_slot = size[gone], size[slot]
        size[gone] = 0
        size[slot] = n_gone + n_slot
        for other in range(zones):
            if size[other] > 0 and other != slot:
                mean = (n_gone * means[gone, other] + n_slot * means[slot, other]) / (n_gone + n_slot)
                means[slot, other] = mean
                means[other, slot] = mean
