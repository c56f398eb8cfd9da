"""Compiled pivots of the dual simplex method of :mod:`.simplex`."""

from __future__ import annotations

import numpy as np

from ..._compiling import njit

#: Why the loop ended: all variables are within their bounds, the basis must be inverted again, no
#: progress, or a basis that is singular up to rounding.
OPTIMAL, REFRESH, STALLED, SINGULAR = 0, 1, 2, 3

#: Smallest pivot, relative to the largest on the ray up to it; otherwise a shorter step is taken.
MIN_PIVOT_SHARE = 1e-2
#: Largest relative difference of a pivot computed by row and by column.
PIVOT_TOLERANCE = 1e-7
#: Entries of the tableau row below this share of the largest multiplier count as zero.
MIN_TABLEAU_ENTRY = 1e-11
#: Consecutive pivots without progress after which the costs are perturbed.
MAX_IDLE_PIVOTS = 60
#: Smallest rise of the dual objective, which is at most one, that counts as progress.
MIN_OBJECTIVE_RISE = 1e-16
#: Breakpoints of the ray that are sorted first; four times as many if these are not enough.
SORTED_BREAKPOINTS = 32


@njit(cache=True, nogil=True)
def take_steps(
    A: np.ndarray,
    limits: np.ndarray,
    box: np.ndarray,
    E: np.ndarray,
    S: np.ndarray,
    s: int,
    at: np.ndarray,
    side: np.ndarray,
    inverse: np.ndarray,
    z: np.ndarray,
    r: np.ndarray,
    d: np.ndarray,
    alpha: np.ndarray,
    wz: np.ndarray,
    wr: np.ndarray,
    tol_z: np.ndarray,
    tol_r: np.ndarray,
    steps: int,
) -> tuple[int, int, int]:
    """Pivot until all variables are within their bounds or one of the other statuses applies.

    Variables are z (n,), within [0, box], and the values r = A z (q,) of the rows, within their
    limits. ``E`` lists the z that are basic, ``S`` the r that are not. All arrays except A, limits,
    box and the tolerances are changed in place; of E, S and alpha the first s entries are in use,
    of the inverse the leading s x s block.

    Parameters
    ----------
    at : int array of shape (n,)
        -1 if z is at zero, -2 at its upper bound, 0 if it is basic.
    side : int array of shape (q,)
        -1 or 1 if r is at the lower or upper limit, 0 if it is basic.
    wz, wr : arrays of shape (n,), (q,)
        Steepest edge weights: squared norms of the rows of the inverse of the basis.
    tol_z, tol_r : arrays of shape (n,), (q,)
        How far each variable may be outside its bounds.

    Returns
    -------
    s, status, number of pivots
    """
    n, q = len(z), len(r)
    g = np.empty(n)
    rho, h = np.empty(len(S)), np.empty(len(S))
    change, column, edge = np.zeros(n), np.zeros(n), np.zeros(n)
    move, entry = np.empty(len(S)), np.empty(len(S))
    theta, which = np.empty(n + len(S)), np.empty(n + len(S), dtype=np.int64)
    column_r, edge_r, change_r = np.empty(q), np.empty(q), np.empty(q)
    idle = 0
    for taken in range(steps):
        # -- leaving variable: the largest infeasibility in units of its edge ---------------------
        best, leaves_z, leave = 0.0, True, -1
        for e in range(s):
            i = E[e]
            out = max(z[i] - box[i], -z[i])
            if out > tol_z[i] and out * out > best * wz[e]:
                best, leaves_z, leave = out * out / wz[e], True, e
        for row in range(q):
            if side[row] == 0:
                out = abs(r[row]) - limits[row]
                if out > tol_r[row] and out * out > best * wr[row]:
                    best, leaves_z, leave = out * out / wr[row], False, row
        if leave < 0:
            return s, OPTIMAL, taken
        # -- the row of the leaving variable in the tableau ---------------------------------------
        if leaves_z:
            value = z[E[leave]]
            upper, lower = box[E[leave]], 0.0
            rho[:s] = inverse[leave, :s]
            g[:] = 0.0
        else:
            value = r[leave]
            upper, lower = limits[leave], -limits[leave]
            rho[:s] = 0.0
            for e in range(s):
                a = A[leave, E[e]]
                for k in range(s):
                    rho[k] += a * inverse[e, k]
            g[:] = A[leave]
        _subtract_rows(A, S, rho, s, g)
        h[:s] = rho[:s]
        sign = 1.0 if value > upper else -1.0
        out = value - upper if sign > 0 else lower - value
        bound = upper if sign > 0 else lower
        # -- entering variable: visit the breakpoints at which reduced costs change sign -----------
        largest = 1.0
        for k in range(s):
            largest = max(largest, abs(rho[k]))
        smallest = MIN_TABLEAU_ENTRY * largest
        count = 0
        for i in range(n):
            if at[i] != 0:
                c = sign * g[i]
                if at[i] == -2 and c > smallest:
                    theta[count], which[count] = max(d[i], 0.0) / c, i
                    count += 1
                elif at[i] == -1 and c < -smallest:
                    theta[count], which[count] = min(d[i], 0.0) / c, i
                    count += 1
        for k in range(s):
            c = sign * h[k] * side[S[k]]
            if c > smallest and limits[S[k]] > 0:
                theta[count], which[count] = max(alpha[k] * side[S[k]], 0.0) / c, n + k
                count += 1
        if count == 0:
            return s, SINGULAR, taken
        # Usually few breakpoints are passed: sort the first ones, and more only if needed.
        some = SORTED_BREAKPOINTS
        while True:
            near = np.arange(count)
            if some < count:
                cut = np.partition(theta[:count], some)[some]
                near = np.flatnonzero(theta[:count] <= cut)
            order = near[np.argsort(theta[near])]
            slope, last, big = out, -1, 0.0
            for t in range(len(order)):
                w = which[order[t]]
                c = abs(g[w]) if w < n else abs(h[w - n])
                slope -= c * (box[w] if w < n else 2.0 * limits[S[w - n]])
                big = max(big, c)
                last = t
                if slope <= 0:
                    break
            if slope <= 0 or some >= count:
                break
            some *= 4
        chosen = last
        while chosen > 0:
            w = which[order[chosen]]
            if (abs(g[w]) if w < n else abs(h[w - n])) >= MIN_PIVOT_SHARE * big:
                break
            chosen -= 1
        enter = which[order[chosen]]
        step = sign * theta[order[chosen]]
        pivot = g[enter] if enter < n else h[enter - n]
        # -- changes: variables that were passed move to their other bound -------------------------
        change[:] = 0.0
        move[:s] = 0.0
        for t in range(chosen):
            w = which[order[t]]
            if w < n:
                change[w] = box[w] if at[w] == -1 else -box[w]
                value += g[w] * change[w]
            else:
                row = S[w - n]
                move[w - n] = -2.0 * side[row] * limits[row]
                value += h[w - n] * move[w - n]
        amount = (bound - value) / pivot
        column[:] = 0.0
        edge[:] = 0.0
        if enter < n:
            change[enter] = amount
            column[enter] = 1.0
        else:
            move[enter - n] = amount
        for k in range(s):
            row = S[k]
            total = 0.0
            for t in range(chosen + 1):
                w = which[order[t]]
                if w < n:
                    total += A[row, w] * change[w]
            move[k] -= total
        for k in range(s):
            entry[k] = A[S[k], enter] if enter < n else 0.0
        _apply_inverse(inverse, E, s, move, entry, rho, change, column, edge)
        if enter >= n:
            for e in range(s):
                column[E[e]] = inverse[e, enter - n]
        _apply_rows(A, side, change, column, edge, change_r, column_r, edge_r)
        found = column[E[leave]] if leaves_z else column_r[leave]
        if abs(found - pivot) > PIVOT_TOLERANCE * (abs(pivot) + 1e-3 * largest):
            return s, REFRESH if taken else SINGULAR, taken
        # -- apply the changes ---------------------------------------------------------------------
        idle = idle + 1 if abs(step) * out < MIN_OBJECTIVE_RISE else 0
        for t in range(chosen):
            w = which[order[t]]
            if w < n:
                at[w] = -3 - at[w]
                z[w] = 0.0 if at[w] == -1 else box[w]
            else:
                row = S[w - n]
                side[row] = -side[row]
                r[row] = side[row] * limits[row]
        for i in range(n):
            if at[i] != 0:
                d[i] -= step * g[i]
        for k in range(s):
            alpha[k] -= step * h[k]
        weight = 0.0 if leaves_z else 1.0
        for k in range(s):
            weight += rho[k] * rho[k]
        for e in range(s):
            i = E[e]
            z[i] += change[i]
            ratio = column[i] / pivot
            w2 = wz[e] - 2.0 * ratio * edge[i] + ratio * ratio * weight
            wz[e] = max(w2, 1e-4 * wz[e], 1e-300)
        for row in range(q):
            if side[row] == 0:
                r[row] += change_r[row]
                ratio = column_r[row] / pivot
                w2 = wr[row] - 2.0 * ratio * edge_r[row] + ratio * ratio * weight
                wr[row] = max(w2, 1.0)
        entered = weight / (pivot * pivot)
        if leaves_z:
            gone = E[leave]
            z[gone], at[gone], d[gone] = bound, -2 if sign > 0 else -1, step
        else:
            r[leave], side[leave] = bound, 1 if sign > 0 else -1
        if enter < n:
            z[enter] += amount
            at[enter], d[enter] = 0, 0.0
        else:
            row = S[enter - n]
            r[row] = side[row] * limits[row] + amount
            side[row] = 0
            wr[row] = max(entered, 1.0)
        # -- update the inverse --------------------------------------------------------------------
        if leaves_z and enter < n:  # a column is replaced
            for k in range(s):
                inverse[leave, k] /= -pivot
            for e in range(s):
                if e != leave:
                    c = -column[E[e]]
                    for k in range(s):
                        inverse[e, k] -= c * inverse[leave, k]
            E[leave] = enter
            wz[leave] = entered
        elif leaves_z:  # a row and a column are removed
            k0 = enter - n
            for e in range(s):
                if e != leave:
                    c = inverse[e, k0] / pivot
                    for k in range(s):
                        inverse[e, k] -= c * rho[k]
            s -= 1
            E[leave], wz[leave] = E[s], wz[s]
            inverse[leave, : s + 1] = inverse[s, : s + 1]
            S[k0], alpha[k0] = S[s], alpha[s]
            inverse[:s, k0] = inverse[:s, s]
        elif enter < n:  # a row and a column are added
            for e in range(s):
                c = -column[E[e]] / pivot
                for k in range(s):
                    inverse[e, k] += c * rho[k]
                inverse[e, s] = -c
            for k in range(s):
                inverse[s, k] = -rho[k] / pivot
            inverse[s, s] = 1.0 / pivot
            E[s], S[s], alpha[s], wz[s] = enter, leave, step, entered
            s += 1
        else:  # a row is replaced
            k0 = enter - n
            for e in range(s):
                inverse[e, k0] /= pivot
                c = inverse[e, k0]
                for k in range(s):
                    if k != k0:
                        inverse[e, k] -= c * rho[k]
            S[k0], alpha[k0] = leave, step
        if idle >= MAX_IDLE_PIVOTS:
            return s, STALLED, taken + 1
    return s, REFRESH, steps


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _subtract_rows(A: np.ndarray, S: np.ndarray, rho: np.ndarray, s: int, g: np.ndarray) -> None:
    """``g -= sum_k rho_k A[S_k]``, four rows at a time."""
    n = len(g)
    whole = s - s % 4
    for k in range(0, whole, 4):
        a, b, c, e = rho[k], rho[k + 1], rho[k + 2], rho[k + 3]
        A0, A1, A2, A3 = A[S[k]], A[S[k + 1]], A[S[k + 2]], A[S[k + 3]]
        for i in range(n):
            g[i] -= a * A0[i] + b * A1[i] + c * A2[i] + e * A3[i]
    for k in range(whole, s):
        a, A0 = rho[k], A[S[k]]
        for i in range(n):
            g[i] -= a * A0[i]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _apply_rows(
    A: np.ndarray,
    side: np.ndarray,
    u: np.ndarray,
    v: np.ndarray,
    w: np.ndarray,
    u_r: np.ndarray,
    v_r: np.ndarray,
    w_r: np.ndarray,
) -> None:
    """Products of the basic rows with three vectors; each row is read once."""
    n = len(u)
    for row in range(len(side)):
        if side[row] == 0:
            a, b, c = 0.0, 0.0, 0.0
            R = A[row]
            for i in range(n):
                a += R[i] * u[i]
                b += R[i] * v[i]
                c += R[i] * w[i]
            u_r[row], v_r[row], w_r[row] = a, b, c


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _apply_inverse(
    inverse: np.ndarray,
    E: np.ndarray,
    s: int,
    move: np.ndarray,
    entry: np.ndarray,
    rho: np.ndarray,
    change: np.ndarray,
    column: np.ndarray,
    edge: np.ndarray,
) -> None:
    """Products of the inverse with three vectors; the second is negated."""
    for e in range(s):
        a, b, c = 0.0, 0.0, 0.0
        row = inverse[e]
        for k in range(s):
            a += row[k] * move[k]
            b += row[k] * entry[k]
            c += row[k] * rho[k]
        change[E[e]], column[E[e]], edge[E[e]] = a, -b, c


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def absolute_row_sums(A: np.ndarray, z: np.ndarray) -> np.ndarray:
    """``sum_i |A_qi z_i|``."""
    out = np.empty(len(A))
    for q in range(len(A)):
        total = 0.0
        for i in range(len(z)):
            total += abs(A[q, i] * z[i])
        out[q] = total
    return out
