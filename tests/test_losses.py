"""The contract of a loss, run over everything in ``LOSSES``; then what single losses promise."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import FrozenInstanceError, fields
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar
from scipy.special import softmax as softmax_of
from sklearn.metrics import hinge_loss, log_loss, mean_poisson_deviance

from latticework.losses import (
    LOSSES,
    EpsilonInsensitive,
    Huber,
    Loss,
    Poisson,
    SquaredError,
    get_loss,
)

N_ROWS, N_TASKS = 5, 3
OTHER_PARAMETERS = [Huber(0.3), EpsilonInsensitive(0.0), EpsilonInsensitive(1.5)]
INSTANCES = [loss_class() for loss_class in LOSSES.values()] + OTHER_PARAMETERS
SEPARABLE = [loss for loss in INSTANCES if not loss.joint]

every_loss = pytest.mark.parametrize("loss", INSTANCES, ids=repr)
every_separable_loss = pytest.mark.parametrize("loss", SEPARABLE, ids=repr)
fewer_examples = settings(max_examples=40, deadline=None)

seeds = st.integers(0, 2**32 - 1)
predictions = arrays(np.float64, (N_ROWS, N_TASKS), elements=st.floats(-20, 20, width=32))


def read_only(*values):
    """Arrays that raise when a loss writes to them."""
    for value in values:
        value.flags.writeable = False
    return values if len(values) > 1 else values[0]


def accepts_negative(loss):
    try:
        loss.check_targets(np.array([-1.0]))
    except ValueError:
        return False
    return True


def draw_targets(loss, rng, n=N_ROWS, n_tasks=N_TASKS):
    """Valid targets of any loss, ties and zeros among them."""
    if loss.task == "binary":
        return read_only(rng.choice([-1.0, 1.0], size=(n, n_tasks)))
    if loss.task == "multiclass":
        return read_only(np.eye(n_tasks)[rng.integers(n_tasks, size=n)])
    values = np.where(rng.random((n, n_tasks)) < 0.5, 1.0, 3.7) * rng.normal(0, 2, (n, n_tasks))
    values = np.where(rng.random((n, n_tasks)) < 0.5, values.round(), values)
    return read_only(values if accepts_negative(loss) else np.abs(values))


def draw_duals(loss, y, rng, scale=2.0):
    """Points of the dual domain: mixtures of gradients."""
    first, second = (loss.gradient(y, rng.normal(0, scale, y.shape)) for _ in range(2))
    mixture = rng.random((len(y), 1))
    return read_only(mixture * first + (1 - mixture) * second)


def draw_weights(loss, rng, n=N_ROWS, n_tasks=N_TASKS):
    """Weights with zeros, one column only for a joint loss."""
    shape = (n, 1 if loss.joint else n_tasks)
    return read_only(np.where(rng.random(shape) < 0.2, 0.0, rng.exponential(1.0, shape)))


def total(loss, y, f, c):
    """Weighted sum of losses of each task; of all classes together for a joint loss."""
    return (c * loss.value(y, f)).sum(axis=0)


def row_sums(values):
    return values.sum(axis=1, keepdims=True)


def product(loss, u, f):
    """u f in the shape of the loss's values."""
    return row_sums(u * f) if loss.joint else u * f


# --- registry and objects --------------------------------------------------------------------


def test_registry_names_match():
    assert list(LOSSES) == [loss_class.name for loss_class in LOSSES.values()]
    assert set(LOSSES) >= {
        "log_loss",
        "softmax",
        "hinge",
        "squared_hinge",
        "squared_error",
        "huber",
        "epsilon_insensitive",
        "poisson",
    }


@every_loss
def test_attributes(loss):
    assert isinstance(loss, Loss)
    assert loss.task in ("binary", "multiclass", "regression")
    assert loss.joint == (loss.task == "multiclass")
    assert loss.smooth == (loss.curvature_kind != "none")
    assert loss.smooth or loss.gradient_lipschitz == np.inf
    assert loss.gradient_lipschitz > 0


@every_loss
def test_equality_pickle_and_frozen(loss):
    assert loss == pickle.loads(pickle.dumps(loss))
    assert loss == get_loss(loss.name, **{f.name: getattr(loss, f.name) for f in fields(loss)})
    assert hash(loss) == hash(pickle.loads(pickle.dumps(loss)))
    assert get_loss(loss) is loss
    with pytest.raises(FrozenInstanceError):
        loss.delta = 1.0


def test_losses_differ_by_class_and_parameters():
    assert all(one != other for one, other in combinations(INSTANCES, 2))


def test_get_loss_refuses_unknown_names_and_parameters():
    with pytest.raises(ValueError, match=r"'l2' is not one of log_loss, softmax"):
        get_loss("l2")
    with pytest.raises(ValueError, match=r"huber loss has no parameter width.*are delta"):
        get_loss("huber", width=1.0)
    with pytest.raises(ValueError, match="it has no parameters"):
        get_loss("hinge", delta=1.0)
    with pytest.raises(ValueError, match=r"delta were given beside the loss Huber"):
        get_loss(Huber(), delta=1.0)


@pytest.mark.parametrize("delta", [0.0, -1.0, np.inf, np.nan])
def test_huber_refuses_bad_delta(delta):
    with pytest.raises(ValueError, match="delta of the huber loss"):
        Huber(delta)


@pytest.mark.parametrize("epsilon", [-0.1, np.inf, np.nan])
def test_epsilon_insensitive_refuses_bad_epsilon(epsilon):
    with pytest.raises(ValueError, match="epsilon of the epsilon_insensitive loss"):
        EpsilonInsensitive(epsilon)


# --- values and derivatives ------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("n", [0, 1, N_ROWS])
def test_shapes_and_dtype(loss, n):
    rng = np.random.default_rng(0)
    y, u = draw_targets(loss, rng, n), np.zeros((n, N_TASKS))
    f, c = rng.normal(size=(n, N_TASKS)), draw_weights(loss, rng, n)
    per_value = (n, 1) if loss.joint else (n, N_TASKS)
    expected = {
        per_value: [loss.value(y, f), loss.conjugate(y, u)],
        (n, N_TASKS): [loss.gradient(y, f), *loss.dual_domain(y), loss.balance(u, y, c)],
        (N_TASKS,): [loss.best_constant(y, c)],
    }
    if loss.smooth:
        expected[(n, N_TASKS)].append(loss.curvature(y, f))
    for shape, results in expected.items():
        for result in results:
            assert result.shape == shape
            assert result.dtype == np.float64


@every_loss
def test_rows_do_not_influence_each_other(loss):
    rng = np.random.default_rng(1)
    y, f = draw_targets(loss, rng, 40), rng.normal(size=(40, N_TASKS))
    u, rows = draw_duals(loss, y, rng), rng.permutation(40)[:17]
    for method, point in [(loss.value, f), (loss.gradient, f), (loss.conjugate, u)]:
        assert_allclose(method(y, point)[rows], method(y[rows], point[rows]), rtol=1e-14)


@every_separable_loss
def test_tasks_of_separable_losses_do_not_influence_each_other(loss):
    rng = np.random.default_rng(1)
    y, c = draw_targets(loss, rng, 40), draw_weights(loss, rng, 40)
    u = draw_duals(loss, y, rng)
    for t in range(N_TASKS):
        column = slice(t, t + 1)
        balanced = loss.balance(u[:, column], y[:, column], c[:, column])
        assert_allclose(loss.balance(u, y, c)[:, column], balanced, rtol=1e-12)
        constant = loss.best_constant(y[:, column], c[:, column])
        assert_allclose(loss.best_constant(y, c)[column], constant, rtol=1e-12, atol=1e-13)


@every_loss
@given(f=predictions, seed=seeds)
@fewer_examples
def test_values_are_not_negative(loss, f, seed):
    y = draw_targets(loss, np.random.default_rng(seed))
    assert np.all(loss.value(y, read_only(f)) >= 0)


@every_loss
@given(f=predictions, seed=seeds)
@fewer_examples
def test_gradient_lies_between_one_sided_differences(loss, f, seed):
    # Exact for convex functions, kinks included, but for the rounding of the differences.
    y = draw_targets(loss, np.random.default_rng(seed))
    gradient, step = loss.gradient(y, f), 2.0**-20
    for t in range(N_TASKS):
        shift = np.eye(N_TASKS)[t] * step
        here, ahead, behind = (row_sums(loss.value(y, g)) for g in (f, f + shift, f - shift))
        rounding = 1e-15 * (1 + np.abs(row_sums(y * f)) + np.maximum(ahead, behind)) * 20 / step
        assert np.all(gradient[:, [t]] <= (ahead - here) / step + rounding)
        assert np.all(gradient[:, [t]] >= (here - behind) / step - rounding)
        slope_range = (ahead - 2 * here + behind) / step
        if loss.gradient_lipschitz < np.inf:
            assert np.all(slope_range <= loss.gradient_lipschitz * 2 * step + 2 * rounding)


def gradient_differences(loss, y, f, t, step):
    """Differences of the gradient to the left and to the right in task t, (n, T) each."""
    shift = np.eye(f.shape[1])[t] * step
    here = loss.gradient(y, f)
    return (here - loss.gradient(y, f - shift)) / step, (loss.gradient(y, f + shift) - here) / step


@pytest.mark.parametrize(
    "loss", [x for x in INSTANCES if x.curvature_kind == "second derivative"], ids=repr
)
@given(f=predictions, seed=seeds)
@fewer_examples
def test_curvature_is_a_second_derivative(loss, f, seed):
    y = draw_targets(loss, np.random.default_rng(seed))
    curvature, step = loss.curvature(y, f), 2.0**-18
    for t in range(N_TASKS):
        left, right = (d[:, t] for d in gradient_differences(loss, y, f, t, step))
        slack = 1e-9 * (1 + np.abs(f[:, t]) + curvature[:, t])
        assert np.all(curvature[:, t] >= np.minimum(left, right) - slack)
        assert np.all(curvature[:, t] <= np.maximum(left, right) + slack)


@pytest.mark.parametrize(
    "loss", [x for x in INSTANCES if x.curvature_kind == "majoriser"], ids=repr
)
@given(f=predictions, seed=seeds)
@fewer_examples
def test_curvature_is_above_the_hessian(loss, f, seed):
    y = draw_targets(loss, np.random.default_rng(seed))
    step = 2.0**-18
    hessian = np.empty((N_ROWS, N_TASKS, N_TASKS))
    for t in range(N_TASKS):
        hessian[:, t] = sum(gradient_differences(loss, y, f, t, step)) / 2
    above = np.einsum("it,ts->its", loss.curvature(y, f), np.eye(N_TASKS)) - hessian
    assert np.linalg.eigvalsh((above + above.transpose(0, 2, 1)) / 2).min() >= -1e-5


@every_loss
def test_curvature_is_not_negative_or_is_refused(loss):
    rng = np.random.default_rng(2)
    y, f = draw_targets(loss, rng, 200), read_only(rng.normal(0, 3, (200, N_TASKS)))
    if loss.smooth:
        assert np.all(loss.curvature(y, f) >= 0)
    else:
        with pytest.raises(NotImplementedError, match="piecewise linear and has no curvature"):
            loss.curvature(y, f)


@pytest.mark.parametrize("loss", [x for x in INSTANCES if np.isfinite(x.gradient_lipschitz)])
@given(f=predictions, g=predictions, seed=seeds)
@fewer_examples
def test_gradient_is_lipschitz(loss, f, g, seed):
    y = draw_targets(loss, np.random.default_rng(seed))
    change = np.linalg.norm(loss.gradient(y, f) - loss.gradient(y, g), axis=1)
    distance = np.linalg.norm(f - g, axis=1)
    assert np.all(change <= loss.gradient_lipschitz * distance * (1 + 1e-12) + 1e-13)


@every_loss
def test_pieces_are_the_loss_or_are_refused(loss):
    rng = np.random.default_rng(3)
    y, f = draw_targets(loss, rng, 100), rng.normal(0, 2, (100, N_TASKS))
    if loss.smooth:
        with pytest.raises(NotImplementedError, match="not piecewise linear"):
            loss.pieces(y)
    else:
        slopes, offsets = loss.pieces(y)
        assert slopes.shape == offsets.shape == (len(slopes), *y.shape)
        assert_allclose((slopes * f + offsets).max(axis=0), loss.value(y, f), atol=1e-14)


@every_loss
def test_extreme_predictions(loss):
    rng = np.random.default_rng(4)
    sizes = np.array([0.0, 1e-300, 1e-8, 37.0, 690.0, 745.0, 1e4])
    f = rng.choice(np.concatenate([sizes, -sizes]), size=(500, N_TASKS))
    y = draw_targets(loss, rng, 500)
    read_only(f)
    methods = [loss.value, loss.gradient] + [loss.curvature] * loss.smooth
    with warnings.catch_warnings(), np.errstate(over="raise", invalid="raise", divide="raise"):
        warnings.simplefilter("error")
        for method in methods:
            assert np.isfinite(method(y, f)).all()
        if loss.has_probability or loss.task == "regression":
            assert np.isfinite(loss.inverse_link(f)).all()


# --- conjugates and their domain ----------------------------------------------------------------


@every_loss
@given(f=predictions, seed=seeds)
@fewer_examples
def test_fenchel_young(loss, f, seed):
    rng = np.random.default_rng(seed)
    y = draw_targets(loss, rng)
    value, gradient = loss.value(y, f), loss.gradient(y, f)
    for u, is_gradient in [(gradient, True), (draw_duals(loss, y, rng), False)]:
        conjugate = loss.conjugate(y, u)
        assert np.isfinite(conjugate).all()
        gap = value + conjugate - product(loss, u, f)
        size = 1 + np.abs(value) + np.abs(conjugate) + product(loss, np.abs(u), np.abs(f))
        size = size + product(loss, np.abs(y), np.abs(f))
        assert np.all(gap >= -1e-14 * size)
        if is_gradient:
            assert np.all(gap <= 1e-14 * size)


def supremum(function, start, low=-60.0, high=60.0):
    """Largest value of a concave function of one number, or of a vector when start has several."""
    if start.size == 1:
        options = {"xatol": 1e-11, "maxiter": 1000}
        found = minimize_scalar(
            lambda x: -function(np.array([x])),
            bounds=(low, high),
            method="bounded",
            options=options,
        )
        # Bounded search never tries the ends themselves.
        return max(-found.fun, function(np.array([low])), function(np.array([high])))
    return -minimize(lambda x: -function(x), start, tol=1e-10).fun


@every_loss
def test_conjugate_is_the_supremum(loss):
    rng = np.random.default_rng(5)
    n_tasks = N_TASKS if loss.joint else 1
    y = draw_targets(loss, rng, 12, n_tasks)
    u = draw_duals(loss, y, rng, scale=1.0)
    found = [
        supremum(lambda f, i=i: (u[i] * f).sum() - loss.value(y[[i]], f[None]).item(), 0 * u[i])
        for i in range(len(y))
    ]
    assert_allclose(loss.conjugate(y, u)[:, 0], found, rtol=1e-8, atol=1e-8)


@every_loss
def test_biconjugate_is_the_loss(loss):
    rng = np.random.default_rng(6)
    n_tasks = N_TASKS if loss.joint else 1
    y = draw_targets(loss, rng, 12, n_tasks)
    f = rng.normal(size=y.shape)
    low, high = (np.clip(end, -50, 50) for end in loss.dual_domain(y))

    def best_dual(i):
        if loss.joint:  # every point of the open domain is a softmax minus y
            return supremum(lambda z: objective(i, softmax_of(z) - y[i]), np.zeros(n_tasks))
        return supremum(lambda u: objective(i, u), np.zeros(1), low[i, 0], high[i, 0])

    def objective(i, u):
        return (u * f[i]).sum() - loss.conjugate(y[[i]], u[None]).item()

    found = [best_dual(i) for i in range(len(y))]
    assert_allclose(loss.value(y, f)[:, 0], found, rtol=1e-8, atol=1e-8)


@every_loss
@given(f=predictions, seed=seeds)
@fewer_examples
def test_gradients_and_zero_lie_in_the_domain(loss, f, seed):
    y = draw_targets(loss, np.random.default_rng(seed))
    low, high = loss.dual_domain(y)
    gradient = loss.gradient(y, f)
    assert np.all((low <= 0) & (high >= 0))
    assert np.all((low <= gradient) & (gradient <= high))
    assert np.isfinite(loss.conjugate(y, gradient)).all()
    assert_allclose(loss.conjugate(y, np.zeros_like(f)), 0.0, atol=2e-15 * 20)


@every_separable_loss
@pytest.mark.parametrize("end", [0, 1])
def test_edges_of_the_domain(loss, end):
    y = draw_targets(loss, np.random.default_rng(7), 60)
    edge, outwards = loss.dual_domain(y)[end], (-1.0, 1.0)[end]
    y, edge = y[np.isfinite(edge)][:, None], edge[np.isfinite(edge)][:, None]
    unit = np.maximum(1.0, np.abs(edge)) * np.finfo(float).eps
    at_edge = loss.conjugate(y, edge)
    assert np.isfinite(at_edge).all()
    assert_array_equal(loss.conjugate(y, edge + 2 * outwards * unit), at_edge)
    assert np.isposinf(loss.conjugate(y, edge + 20 * outwards * unit)).all()
    assert np.isposinf(loss.conjugate(y, edge + outwards * 1e5)).all()
    # Continuous up to the edge: entropies have an infinite slope there, but no jump.
    assert_allclose(loss.conjugate(y, edge - outwards * 1e-12), at_edge, atol=1e-10)


# --- intercepts ---------------------------------------------------------------------------------


def check_balanced(loss, balanced, y, c):
    assert np.isfinite(loss.conjugate(y, balanced)).all()
    size = (c * np.maximum(1.0, np.abs(balanced))).sum(axis=0)
    assert np.all(np.abs((c * balanced).sum(axis=0)) <= 1e-14 * size)


@every_loss
@given(seed=seeds, scale=st.sampled_from([1e-3, 1.0, 10.0]))
@fewer_examples
def test_balance(loss, seed, scale):
    rng = np.random.default_rng(seed)
    y, c = draw_targets(loss, rng), draw_weights(loss, rng)
    u = draw_duals(loss, y, rng, scale)
    balanced = loss.balance(u, y, c)
    check_balanced(loss, balanced, y, c)
    assert_allclose(loss.balance(balanced, y, c), balanced, rtol=1e-12, atol=1e-13)


@every_loss
def test_balance_keeps_what_is_balanced(loss):
    rng = np.random.default_rng(8)
    y, c = draw_targets(loss, rng, 200), draw_weights(loss, rng, 200)
    intercept = np.broadcast_to(loss.best_constant(y, c), y.shape)
    u = loss.gradient(y, intercept)
    if loss.smooth:
        assert_allclose(loss.balance(u, y, c), u, rtol=1e-12, atol=1e-12)
    check_balanced(loss, loss.balance(u, y, c), y, c)


@every_loss
def test_balance_with_one_sided_duals_and_without_weight(loss):
    rng = np.random.default_rng(9)
    y = draw_targets(loss, rng, 30)
    u = loss.gradient(y, np.full(y.shape, 5.0))
    for c in (np.ones((30, 1)), np.zeros((30, 1))):
        weights = c if loss.joint else np.broadcast_to(c, y.shape)
        check_balanced(loss, loss.balance(u, y, weights), y, weights)
    single = np.zeros((30, 1))
    single[0] = 1.0
    weights = single if loss.joint else np.broadcast_to(single, y.shape)
    check_balanced(loss, loss.balance(u, y, weights), y, weights)


@every_loss
def test_balance_clips_to_the_domain(loss):
    rng = np.random.default_rng(10)
    y, c = draw_targets(loss, rng, 30), draw_weights(loss, rng, 30)
    u = draw_duals(loss, y, rng) + rng.normal(0, 1e-15, y.shape)
    check_balanced(loss, loss.balance(u, y, c), y, c)


@every_loss
@given(seed=seeds, n=st.integers(1, 30))
@fewer_examples
def test_best_constant_is_optimal(loss, seed, n):
    rng = np.random.default_rng(seed)
    y, c = draw_targets(loss, rng, n), draw_weights(loss, rng, n)
    best = loss.best_constant(y, c)
    assert np.isfinite(best).all()
    value = total(loss, y, np.broadcast_to(best, y.shape), c)
    for other in [best + s * rng.choice([-1, 1], N_TASKS) for s in (1e-4, 1e-2, 1.0, 10.0)]:
        elsewhere = total(loss, y, np.broadcast_to(other, y.shape), c)
        # One class only: the infimum is not attained, and is met to rounding.
        assert np.all(value <= elsewhere + 1e-13 * c.sum(axis=0) * (1 + np.abs(best).max()))


@every_separable_loss
@given(seed=seeds, n=st.integers(1, 30))
@fewer_examples
def test_best_constant_is_where_the_slope_changes_sign(loss, seed, n):
    rng = np.random.default_rng(seed)
    y, c = draw_targets(loss, rng, n), draw_weights(loss, rng, n)
    best, step = loss.best_constant(y, c), 1e-10
    sizes = (c * np.abs(y)).sum(axis=0) + c.sum(axis=0)
    below, above = (
        (c * loss.gradient(y, np.broadcast_to(best + s, y.shape))).sum(axis=0)
        for s in (-step, step)
    )
    assert np.all(below <= 1e-14 * sizes)
    assert np.all(above >= -1e-14 * sizes)


@every_loss
def test_weights_are_repetitions(loss):
    rng = np.random.default_rng(11)
    y = draw_targets(loss, rng, 25)
    repeats = rng.integers(0, 4, size=25)
    c = np.broadcast_to(repeats[:, None].astype(float), (25, 1 if loss.joint else N_TASKS))
    repeated = np.repeat(y, repeats, axis=0)
    ones = np.ones((len(repeated), c.shape[1]))
    assert_allclose(
        loss.best_constant(y, c), loss.best_constant(repeated, ones), rtol=1e-12, atol=1e-13
    )
    u = draw_duals(loss, y, rng)
    assert_allclose(
        np.repeat(loss.balance(u, y, c), repeats, axis=0),
        loss.balance(np.repeat(u, repeats, axis=0), repeated, ones),
        rtol=1e-12,
        atol=1e-14,
    )


@every_loss
def test_best_constant_ignores_scale_of_weights(loss):
    rng = np.random.default_rng(12)
    y, c = draw_targets(loss, rng, 25), draw_weights(loss, rng, 25)
    for scale in (1e-200, 1e-6, 1e6):
        scaled = loss.best_constant(y, scale * c)
        assert_allclose(scaled, loss.best_constant(y, c), rtol=1e-12, atol=1e-12)


@every_loss
def test_best_constant_is_finite_without_a_class_or_without_weight(loss):
    rng = np.random.default_rng(13)
    y = draw_targets(loss, rng, 40)
    width = 1 if loss.joint else N_TASKS
    for kept in (y[:, :1] == y[0, 0], y[:, :1] != y[0, 0]):
        c = np.broadcast_to(kept, (40, width)).astype(float)
        assert np.isfinite(loss.best_constant(y, c)).all()
    assert_array_equal(loss.best_constant(y, np.zeros((40, width))), np.zeros(N_TASKS))


# --- means and targets --------------------------------------------------------------------------


@every_loss
def test_inverse_link(loss):
    rng = np.random.default_rng(14)
    y, c = draw_targets(loss, rng, 50), draw_weights(loss, rng, 50)
    f = rng.normal(0, 5, (50, N_TASKS))
    if loss.task != "regression" and not loss.has_probability:
        with pytest.raises(NotImplementedError, match="no probabilities; fit with loss='log_loss'"):
            loss.inverse_link(f)
        return
    mean = loss.inverse_link(f)
    assert mean.shape == f.shape
    assert not np.shares_memory(mean, f)
    if loss.has_probability:
        assert loss.task != "regression"
        assert np.all((mean >= 0) & (mean <= 1))
        frequency = (c * (y > 0)).sum(axis=0) / np.broadcast_to(c, y.shape).sum(axis=0)
        constant = loss.inverse_link(loss.best_constant(y, c)[None])[0]
        assert_allclose(constant, frequency, rtol=1e-12)
    if loss.task == "multiclass":
        assert_allclose(mean.sum(axis=1), 1.0, rtol=1e-14)


@every_loss
def test_check_targets(loss):
    y = draw_targets(loss, np.random.default_rng(15), 50)
    loss.check_targets(y)
    if loss.task == "regression":
        loss.check_targets(np.array([1.0, np.nan]))
        with pytest.raises(ValueError, match=f"{loss.name} loss needs finite targets, but 1 are"):
            loss.check_targets(np.array([1.0, np.inf]))


def test_poisson_refuses_negative_targets():
    with pytest.raises(ValueError, match=r"2 are negative \(the smallest is -3\).*squared_error"):
        Poisson().check_targets(np.array([[1.0, -3.0], [-1.0, np.nan]]))


# --- single losses ------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [Huber(), Huber(0.3)], ids=repr)
@given(f=predictions, g=predictions, seed=seeds)
@fewer_examples
def test_huber_weights_give_a_quadratic_above_the_loss(loss, f, g, seed):
    y = draw_targets(loss, np.random.default_rng(seed))
    quadratic = loss.value(y, f) + loss.gradient(y, f) * (g - f)
    quadratic += 0.5 * loss.curvature(y, f) * (g - f) ** 2
    assert np.all(loss.value(y, g) <= quadratic + 1e-13 * (1 + np.abs(quadratic)))


def test_wide_huber_is_squared_error():
    rng = np.random.default_rng(16)
    y, f = rng.normal(size=(2, 50, N_TASKS))
    assert_allclose(Huber(1e3).value(y, f), SquaredError().value(y, f), rtol=1e-14)
    c = np.ones_like(y)
    assert_allclose(Huber(1e3).best_constant(y, c), SquaredError().best_constant(y, c), rtol=1e-13)


def test_softmax_domain_edges():
    loss, y = get_loss("softmax"), np.array([[1.0, 0.0, 0.0]])
    vertex, eps = np.array([[-1.0, 1.0, 0.0]]), np.finfo(float).eps
    assert loss.conjugate(y, vertex) == 0.0
    rounded = vertex + np.array([[eps, 0.0, -eps]])
    assert_allclose(loss.conjugate(y, rounded), 0.0, atol=40 * eps)
    for outside in ([1e-12, 0.0, 0.0], [0.0, 1e-12, -1e-12], [0.5, 0.5, 0.5]):
        assert np.isposinf(loss.conjugate(y, vertex + np.array([outside]))).all()


def test_softmax_of_two_classes_is_log_loss():
    rng = np.random.default_rng(17)
    sign, f = rng.choice([-1.0, 1.0], (30, 1)), rng.normal(0, 4, (30, 1))
    y, pair = np.hstack([sign < 0, sign > 0]).astype(float), np.hstack([0 * f, f])
    two, one = get_loss("softmax"), get_loss("log_loss")
    assert_allclose(two.value(y, pair), one.value(sign, f), rtol=1e-13)
    assert_allclose(two.gradient(y, pair)[:, [1]], one.gradient(sign, f), atol=1e-15)
    u = one.gradient(sign, f)
    assert_allclose(two.conjugate(y, np.hstack([-u, u])), one.conjugate(sign, u), atol=1e-15)


def test_softmax_refuses_weights_per_class():
    y = np.eye(2)
    with pytest.raises(ValueError, match=r"one weight per row.*one-vs-rest"):
        get_loss("softmax").best_constant(y, np.array([[1.0, 2.0], [1.0, 1.0]]))
    equal_columns = np.array([[1.0, 1.0], [3.0, 3.0]])
    assert_allclose(get_loss("softmax").best_constant(y, equal_columns), np.log([0.25, 0.75]))


@pytest.mark.parametrize("margin", [40.0, 200.0, 700.0])
def test_tiny_losses_keep_their_digits(margin):
    expected = np.exp(-margin)
    f = np.array([[margin]])
    assert_allclose(get_loss("log_loss").value(np.ones((1, 1)), f), expected, rtol=1e-13)
    assert_allclose(get_loss("log_loss").curvature(-np.ones((1, 1)), f), expected, rtol=1e-13)
    pair, y = np.array([[margin, 0.0]]), np.array([[1.0, 0.0]])
    assert_allclose(get_loss("softmax").value(y, pair), expected, rtol=1e-13)


@pytest.mark.parametrize("y", [1e-310, 1e-5, 1.0, 1e6])
def test_poisson_near_its_minimum(y):
    target, shift = np.array([[y]]), 1e-4
    f = np.log(target) + shift
    second_order = y * (shift**2 / 2 + shift**3 / 6 + shift**4 / 24)
    assert_allclose(Poisson().value(target, f), second_order, rtol=1e-7)
    u = np.array([[y * shift]])
    around_zero = Poisson().conjugate(target, u) - u * np.log(y)
    expected = y * (shift**2 / 2 - shift**3 / 6 + shift**4 / 12)
    assert_allclose(around_zero, expected, rtol=1e-9, atol=1e-310)


def test_values_agree_with_scikit_learn():
    rng = np.random.default_rng(18)
    sign, f = rng.choice([-1.0, 1.0], (60, 1)), rng.normal(0, 2, (60, 1))
    probability = get_loss("log_loss").inverse_link(f)
    assert_allclose(get_loss("log_loss").value(sign, f).mean(), log_loss(sign, probability))
    assert_allclose(get_loss("hinge").value(sign, f).mean(), hinge_loss(sign[:, 0], f[:, 0]))
    counts = rng.poisson(2.0, (60, 1)).astype(float)
    deviance = mean_poisson_deviance(counts[:, 0], np.exp(f[:, 0]))
    assert_allclose(2 * Poisson().value(counts, f).mean(), deviance)
    classes, scores = rng.integers(4, size=60), rng.normal(size=(60, 4))
    probabilities = get_loss("softmax").inverse_link(scores)
    value = get_loss("softmax").value(np.eye(4)[classes], scores).mean()
    assert_allclose(value, log_loss(classes, probabilities))


@pytest.mark.parametrize(
    "loss", [x for x in INSTANCES if x.curvature_kind == "approximation"], ids=repr
)
@given(f=predictions, seed=seeds)
@fewer_examples
def test_approximate_curvature_is_near_the_diagonal_of_the_hessian(loss, f, seed):
    """Above it, so that steps are safe, and at most four times it, so that they are not timid."""
    y = draw_targets(loss, np.random.default_rng(seed))
    curvature, step = loss.curvature(y, f), 2.0**-18
    for t in range(N_TASKS):
        diagonal = sum(d[:, t] for d in gradient_differences(loss, y, f, t, step)) / 2
        assert np.all(curvature[:, t] >= diagonal - 1e-5)
        assert np.all(curvature[:, t] <= 4 * diagonal + 1e-5)


@pytest.mark.parametrize("loss", [x for x in INSTANCES if x.joint], ids=repr)
@given(f=predictions, seed=seeds)
@fewer_examples
def test_joint_losses_have_the_hessian_of_their_gradient(loss, f, seed):
    y, step = draw_targets(loss, np.random.default_rng(seed)), 2.0**-18
    hessian = loss.hessian(y, f)
    for entries, s, t in zip(hessian, *np.triu_indices(N_TASKS), strict=True):
        numeric = sum(d[:, s] for d in gradient_differences(loss, y, f, t, step)) / 2
        assert_allclose(entries, numeric, atol=1e-5)


@pytest.mark.parametrize("loss", [x for x in INSTANCES if not x.joint], ids=repr)
def test_separable_losses_refuse_a_hessian(loss):
    with pytest.raises(NotImplementedError, match="sum over tasks"):
        loss.hessian(np.ones((1, 1)), np.ones((1, 1)))
