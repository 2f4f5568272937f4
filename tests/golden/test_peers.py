"""Our figures beside those of other packages: equal to 1e-12, or a test by name that asserts why
not.

``p`` is what was forecast and ``y`` what happened; peers differ in the order of the two.
"""

import importlib
import math
import warnings

import numpy as np
import pytest

import truecast as tc

EXACT = 1e-12
EDGES_OF_NONE = 15  # bins whose edges are none of the tied forecasts below, but for 0 and 1


def equal(expected, tolerance=EXACT):
    return pytest.approx(expected, rel=0, abs=tolerance)


def peer(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a peer's import warns of is not ours to mend
        return importlib.import_module(name)


@pytest.fixture(scope="session")
def metrics():
    return peer("sklearn.metrics")


@pytest.fixture(scope="session")
def calibration_curve():
    return peer("sklearn.calibration").calibration_curve


@pytest.fixture(scope="session")
def isotonic():
    return peer("sklearn.isotonic").IsotonicRegression


@pytest.fixture(scope="session")
def relplot():
    return peer("relplot")


@pytest.fixture(scope="session")
def probcal():
    return peer("probcal.metrics")


@pytest.fixture(scope="session")
def corp_reliability():
    return peer("probcal.curves").corp_reliability


@pytest.fixture(scope="session")
def uncal():
    return peer("calibration.utils")  # of the distribution uncertainty-calibration


@pytest.fixture
def global_seed():
    """The peers that are random use numpy's global state."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    yield
    np.random.set_state(before)  # noqa: NPY002


def _outcomes(rng, p):
    y = (rng.random(len(p)) < 0.15 + 0.6 * p).astype(np.int64)
    y[:2] = 0, 1  # some peers refuse a single class
    return y


def _continuous(seed):
    rng = np.random.default_rng(seed)
    p = rng.random(600)
    return _outcomes(rng, p), p


def _skewed(seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.4, 3, 600).clip(1e-6, 1 - 1e-6)
    return _outcomes(rng, p), p


def _tied(seed):
    rng = np.random.default_rng(seed)
    p = rng.integers(1, 64, 600) / 64
    return _outcomes(rng, p), p


def _with_endpoints(seed):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 65, 600) / 64
    p[:40], p[40:60] = 0.0, 1.0
    return _outcomes(rng, p), p


KINDS = {"continuous": _continuous, "skewed": _skewed, "tied": _tied, "endpoints": _with_endpoints}
OPEN = ["continuous", "skewed", "tied"]  # no forecast of certainty


def cases(kinds):
    return pytest.mark.parametrize(
        ("kind", "seed"), [(kind, seed) for kind in kinds for seed in range(3)]
    )


def weights_of(seed, kind):
    rng = np.random.default_rng(100 + seed)
    return {"none": None, "counts": rng.integers(1, 6, 600), "real": rng.lognormal(0, 1, 600)}[kind]


weighted = pytest.mark.parametrize("weighting", ["none", "counts", "real"])


def share_and_gap(y, p, groups):
    """Return the share and the gap (outcomes less forecasts) of each group of rounds."""
    kept = [group for group in groups if len(group)]
    return np.array([len(g) for g in kept]) / len(y), np.array(
        [y[g].mean() - p[g].mean() for g in kept]
    )


def l1(y, p, groups):
    share, gap = share_and_gap(y, p, groups)
    return float(share @ np.abs(gap))


def _smoothed(places, masses, sigma, grid):
    """Return the integral of the absolute value of masses spread by a Gaussian."""
    kernel = np.exp(-(((grid[:, None] - places) / sigma) ** 2) / 2) / (
        sigma * math.sqrt(2 * math.pi)
    )
    height = np.abs(kernel @ masses)
    return float((height[1:] + height[:-1]) @ np.diff(grid) / 2)


# scikit-learn: scores


@cases(KINDS)
@weighted
def test_sklearn_brier_score(metrics, kind, seed, weighting):
    y, p = KINDS[kind](seed)
    weight = weights_of(seed, weighting)
    assert tc.brier_score(y, p, sample_weight=weight) == equal(
        metrics.brier_score_loss(y, p, sample_weight=weight)
    )


@cases(OPEN)
@weighted
def test_sklearn_log_loss(metrics, kind, seed, weighting):
    y, p = KINDS[kind](seed)
    weight = weights_of(seed, weighting)
    assert tc.log_loss(y, p, sample_weight=weight) == equal(
        metrics.log_loss(y, p, sample_weight=weight)
    )


def test_sklearn_log_loss_clips_what_was_deemed_impossible_and_ours_is_infinite(metrics):
    y, p = np.array([0, 1, 1]), np.array([0.25, 0.0, 0.5])
    clipped = p.clip(np.finfo(float).eps, 1 - np.finfo(float).eps)
    assert metrics.log_loss(y, p) == equal(tc.log_loss(y, clipped))
    assert tc.log_loss(y, p) == math.inf


def test_sklearn_log_loss_clips_tiny_forecasts_too_and_ours_takes_them_as_they_are(metrics):
    y, p = np.array([0, 1]), np.array([0.5, 1e-200])
    eps = np.finfo(float).eps
    assert metrics.log_loss(y, p) == equal((math.log(2) - math.log(eps)) / 2)
    assert tc.log_loss(y, p) == equal((math.log(2) + 200 * math.log(10)) / 2)


def test_sklearn_log_loss_charges_a_certainty_that_came_true(metrics):
    y, p = np.array([1, 0]), np.array([1.0, 0.0])
    assert tc.log_loss(y, p) == 0.0
    assert 0 < metrics.log_loss(y, p) == pytest.approx(-math.log1p(-np.finfo(float).eps))


# scikit-learn: bins


@cases(KINDS)
def test_sklearn_calibration_curve_uniform(calibration_curve, kind, seed):
    y, p = KINDS[kind](seed)
    for n_bins in (1, 7, EDGES_OF_NONE):
        rate, forecast = calibration_curve(y, p, n_bins=n_bins)
        bins = tc.reliability_bins(y, p, n_bins=n_bins)
        seen = bins.counts > 0
        assert bins.rate[seen] == equal(rate)
        assert bins.forecast[seen] == equal(forecast)


def test_sklearn_bins_are_closed_above_and_ours_below(calibration_curve):
    y, p = np.array([0, 1, 1]), np.array([0.25, 0.5, 0.75])  # 0.5 is the edge of two bins
    rate, forecast = calibration_curve(y, p, n_bins=2)
    assert (rate.tolist(), forecast.tolist()) == ([0.5, 1.0], [0.375, 0.75])  # 0.5 below
    bins = tc.reliability_bins(y, p, n_bins=2)
    assert (bins.rate.tolist(), bins.forecast.tolist()) == ([0.0, 1.0], [0.25, 0.625])  # 0.5 above
    # mirrored, the two rules change places
    mirrored = tc.reliability_bins(1 - y, 1 - p, n_bins=2)
    assert (1 - mirrored.rate[::-1]).tolist() == rate.tolist()
    assert (1 - mirrored.forecast[::-1]).tolist() == forecast.tolist()


def test_sklearn_and_probcal_edges_are_multiples_of_a_rounded_tenth_ours_nearest_doubles(
    calibration_curve, probcal
):
    assert np.linspace(0, 1, 11)[3] > 0.3  # theirs
    assert tc.reliability_bins([0], [0.5], n_bins=10).edges[3] == 0.3
    y, p = np.array([1, 0, 1]), np.array([0.25, 0.3, 0.35])
    assert tc.reliability_bins(y, p, n_bins=10).counts.tolist() == [0, 0, 1, 2, 0, 0, 0, 0, 0, 0]
    _, forecast = calibration_curve(y, p, n_bins=10)
    assert forecast == equal([0.275, 0.35])  # 0.3 beside 0.25
    # probcal is closed below like ours, yet its 0.3 is not an edge
    assert probcal.ece(y, p, n_bins=10, strategy="width") == equal(l1(y, p, [[0, 1], [2]]))
    assert tc.binned_calibration_error(y, p, n_bins=10) == equal(l1(y, p, [[0], [1, 2]]))


@cases(KINDS)
def test_sklearn_calibration_curve_quantile(calibration_curve, kind, seed):
    y, p = KINDS[kind](seed)
    for n_bins in (1, 4, 15):  # divisors of the number of rounds
        rate, forecast = calibration_curve(y, p, n_bins=n_bins, strategy="quantile")
        bins = tc.reliability_bins(y, p, n_bins=n_bins, strategy="quantile")
        assert bins.rate == equal(rate)
        assert bins.forecast == equal(forecast)


def test_sklearn_quantiles_round_down_when_bins_do_not_divide_rounds_and_ours_up(calibration_curve):
    p = np.arange(1, 7) / 10
    y = np.array([0, 1, 0, 1, 0, 1])
    _, forecast = calibration_curve(y, p, n_bins=4, strategy="quantile")
    # theirs: k / 4 of the way from the first forecast to the last, places 1.25, 2.5, 3.75: 2, 3 and
    # 4 rounds below
    assert forecast == equal([p[:2].mean(), p[2], p[3], p[4:].mean()])
    # ours: at least k / 4 of 6 rounds below, so 2, 3 and 5
    bins = tc.reliability_bins(y, p, n_bins=4, strategy="quantile")
    assert bins.counts.tolist() == [2, 1, 2, 1]
    assert all(bins.counts.cumsum()[k - 1] == math.ceil(k * 6 / 4) for k in (1, 2, 3, 4))


# scikit-learn: isotonic regression


@cases(KINDS)
@weighted
def test_sklearn_isotonic_regression(isotonic, kind, seed, weighting):
    y, p = KINDS[kind](seed)
    weight = weights_of(seed, weighting)
    theirs = isotonic().fit(p, y, sample_weight=weight)
    ours = tc.reliability_curve(y, p, sample_weight=weight)
    assert ours(p) == equal(theirs.predict(p))
    between = np.random.default_rng(seed).uniform(p.min(), p.max(), 50)
    assert ours(between) == equal(theirs.predict(between), 1e-10)  # divides by small steps


def test_sklearn_isotonic_regression_takes_near_forecasts_for_equal_and_ours_only_equal_ones(
    isotonic,
):
    p = np.array([0.1, np.nextafter(0.1, 1), 0.9])
    y = np.array([0, 1, 1])
    assert p[1] - p[0] < np.finfo(float).resolution
    assert isotonic().fit(p, y).predict(p) == equal([0.5, 0.5, 1.0])
    assert tc.reliability_curve(y, p).rate.tolist() == [0.0, 1.0]


# relplot


@cases(OPEN)
def test_relplot_binned_ece(relplot, kind, seed):
    y, p = KINDS[kind](seed)
    for n_bins in (1, 7, EDGES_OF_NONE):
        assert tc.binned_calibration_error(y, p, n_bins=n_bins) == equal(
            relplot.metrics.binnedECE(p, y, nbins=n_bins)
        )


def test_relplot_puts_certainty_in_an_eleventh_bin_and_ours_in_the_tenth(relplot):
    p = np.array([0.95, 1.0])
    y = np.array([1, 0])
    assert relplot.metrics.binnedECE(p, y, nbins=10) == equal(l1(y, p, [[0], [1]]))
    assert tc.binned_calibration_error(y, p, n_bins=10) == equal(l1(y, p, [[0, 1]]))


@cases(["endpoints"])
def test_relplot_binned_ece_but_for_certainty(relplot, kind, seed):
    y, p = KINDS[kind](seed)
    last, certain = np.flatnonzero((p >= 14 / 15) & (p < 1)), np.flatnonzero(p == 1)
    apart, together = l1(y, p, [last, certain]), l1(y, p, [np.concatenate((last, certain))])
    theirs = relplot.metrics.binnedECE(p, y, nbins=15)
    assert theirs - tc.binned_calibration_error(y, p, n_bins=15) == equal(apart - together)


# relplot cuts its kernel off at a distance of one half: no more than a tenth
SIGMAS = [0.02, 0.05, 0.1]


def _ends_by_half(p, cells=1000):
    """Return the weights that relplot gives to forecasts.

    It spreads them over cells and reflects those, but a mass on the first or last point, which is
    its own image, is there once instead of twice: what is at 0 or 1 counts half, and what is in the
    outermost cell in proportion.
    """
    return 1 - np.maximum(0, 1 - p * cells) / 2 - np.maximum(0, 1 - (1 - p) * cells) / 2


@pytest.fixture
def fine_mesh(relplot, monkeypatch):
    """Its integrals are sums over 200 points, the first and last at full weight: take more."""
    monkeypatch.setattr(relplot.config, "smECE_mesh_pts", 50_000)


@pytest.mark.usefixtures("fine_mesh")
@cases(["tied"])
def test_relplot_smooth_ece_at_a_bandwidth(relplot, kind, seed):
    y, p = KINDS[kind](seed)  # none near 0 or 1
    for sigma in SIGMAS:
        theirs = relplot.metrics.smECE_sigma(p, y, sigma=sigma)
        assert theirs == pytest.approx(tc.smooth_ece(y, p, bandwidth=sigma), rel=2e-4)


@pytest.mark.usefixtures("fine_mesh")
@cases(KINDS)
def test_relplot_smooth_ece_counts_forecasts_of_0_and_1_half(relplot, kind, seed):
    y, p = KINDS[kind](seed)
    for sigma in SIGMAS:
        theirs = relplot.metrics.smECE_sigma(p, y, sigma=sigma)
        explained = tc.smooth_ece(y, p, bandwidth=sigma, sample_weight=_ends_by_half(p))
        assert theirs == pytest.approx(explained, rel=2e-4)


def _by_definition(y, p, sigma):
    """Return SmoothECE by quadrature, every forecast with its images beyond 0 and 1."""
    grid = np.linspace(0, 1, 1001)
    images = np.concatenate([sign * p + 2 * k for k in (-1, 0, 1) for sign in (1, -1)])
    return _smoothed(images, np.tile((y - p) / len(p), 6), sigma, grid)


@pytest.mark.alike("smooths on a fine grid")
@pytest.mark.parametrize("kind", KINDS)
def test_relplot_smooth_ece_is_off_by_up_to_four_percent_and_ours_is_the_definition(relplot, kind):
    y, p = KINDS[kind](0)
    for sigma in (0.05, 0.1):
        defined = _by_definition(y, p, sigma)
        assert tc.smooth_ece(y, p, bandwidth=sigma) == pytest.approx(defined, rel=1e-4)
        assert relplot.metrics.smECE_sigma(p, y, sigma=sigma) == pytest.approx(defined, rel=0.04)


@pytest.mark.usefixtures("fine_mesh")
def test_relplot_smooth_ece_loses_half_of_what_is_certain(relplot):
    # two groups too far apart to mix: gaps of 1 at forecast 1 and of 0 at forecast 0.5, of equal
    # size
    y, p = np.array([0, 0, 0, 1]), np.array([1.0, 1.0, 0.5, 0.5])
    assert tc.smooth_ece(y, p, bandwidth=0.05) == pytest.approx(1 / 2, rel=1e-4)
    assert relplot.metrics.smECE_sigma(p, y, sigma=0.05) == pytest.approx(
        (1 / 2) / (1 / 2 + 1), rel=1e-3
    )


@cases(KINDS)
def test_relplot_smooth_ece_halves_its_bandwidth_ten_times(relplot, monkeypatch, kind, seed):
    _, p = KINDS[kind](seed)
    # calibrated: a small bandwidth
    y = (np.random.default_rng(50 + seed).random(600) < p).astype(int)
    exact, ours = tc.smooth_ece(y, p), tc.smooth_ece(y, p, sample_weight=_ends_by_half(p))
    assert 0.01 < ours < 0.1
    value, width = relplot.metrics.smECE(p, y, return_width=True)
    assert width * 2**10 == round(width * 2**10)
    assert value == pytest.approx(exact, abs=2**-10 + 0.04 * exact)
    monkeypatch.setattr(relplot.config, "smECE_mesh_pts", 50_000)
    value, width = relplot.metrics.smECE(p, y, return_width=True)
    # the fixed point is in the last interval, of which theirs is the upper end; the value there is
    # below it
    slack = 2e-4 * ours
    assert width - 2**-10 - slack <= ours <= width + slack
    assert value <= ours + slack
    at_width = tc.smooth_ece(y, p, bandwidth=width, sample_weight=_ends_by_half(p))
    assert value == pytest.approx(at_width, rel=1e-3)


@pytest.mark.parametrize("theta", [1.0, 0.1])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("global_seed")
def test_relplot_laplace_error_is_a_sample_of_the_pairs_of_all_rounds_but_the_last(
    relplot, kind, theta
):
    y, p = KINDS[kind](0)
    terms = 200_000
    estimate = (
        theta * relplot.metrics.laplace_calibration_approx(p, y, terms=terms, theta=theta) ** 2
    )
    sampled_y, sampled_p = y[:-1], p[:-1]  # the ends of randint are half open
    residual = sampled_y - sampled_p
    pairs = np.outer(residual, residual) * np.exp(
        -np.abs(np.subtract.outer(sampled_p, sampled_p)) / theta
    )
    ours = tc.laplace_calibration_error(sampled_y, sampled_p, scale=theta, squared=True)
    assert ours == equal(pairs.mean())
    assert estimate == pytest.approx(ours, abs=5 * pairs.std() / math.sqrt(terms))


@pytest.mark.usefixtures("global_seed")
def test_relplot_laplace_error_never_draws_the_last_round(relplot):
    p, y = np.array([0.0, 0.0, 1.0]), np.array([0, 0, 0])
    assert relplot.metrics.laplace_calibration_approx(p, y) == 0.0
    assert tc.laplace_calibration_error(y, p) == equal(1 / 3)


@pytest.mark.usefixtures("global_seed")
def test_relplot_laplace_error_divides_by_the_scale_and_ours_has_a_kernel_of_height_one(relplot):
    p, y = np.full(3, 0.75), np.zeros(3, int)  # every pair alike: nothing left to chance
    for theta in (0.25, 1.0, 4.0):
        ours = tc.laplace_calibration_error(y, p, scale=theta)
        assert ours == equal(0.75)
        assert relplot.metrics.laplace_calibration_approx(p, y, theta=theta) == equal(
            ours / math.sqrt(theta)
        )


# probcal


@cases(KINDS)
@weighted
def test_probcal_brier_score(probcal, kind, seed, weighting):
    y, p = KINDS[kind](seed)
    weight = weights_of(seed, weighting)
    # probcal moves 0 and 1 inwards by 1e-12, which moves the score by no more than twice that
    tolerance = EXACT if kind in OPEN else 2 * EXACT
    assert tc.brier_score(y, p, sample_weight=weight) == equal(
        probcal.brier_score(y, p, sample_weight=weight), tolerance
    )


@cases(OPEN)
@weighted
def test_probcal_log_loss(probcal, kind, seed, weighting):
    y, p = KINDS[kind](seed)
    weight = weights_of(seed, weighting)
    assert tc.log_loss(y, p, sample_weight=weight) == equal(
        probcal.log_loss(y, p, sample_weight=weight)
    )


def test_probcal_log_loss_clips_and_ours_is_infinite(probcal):
    y, p = np.array([0, 1]), np.array([0.5, 0.0])
    assert probcal.log_loss(y, p) == equal((math.log(2) + 12 * math.log(10)) / 2)
    assert tc.log_loss(y, p) == math.inf


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@cases(KINDS)
@weighted
def test_probcal_ece_in_bins_of_equal_width(probcal, kind, seed, weighting, norm):
    y, p = KINDS[kind](seed)
    weight = weights_of(seed, weighting)
    tolerance = EXACT if kind in OPEN else 2 * EXACT  # its forecasts stop 1e-12 short of 0 and 1
    for n_bins in (1, 7, EDGES_OF_NONE):
        theirs = probcal.ece(y, p, n_bins=n_bins, strategy="width", norm=norm, sample_weight=weight)
        ours = tc.binned_calibration_error(y, p, n_bins=n_bins, norm=norm, sample_weight=weight)
        assert ours == equal(theirs, tolerance)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@cases(["continuous", "skewed"])
def test_probcal_ece_in_bins_of_equal_mass(probcal, kind, seed, norm):
    y, p = KINDS[kind](seed)
    for n_bins in (1, 4, 15):  # divisors of the number of rounds; see scikit-learn above
        theirs = probcal.ece(y, p, n_bins=n_bins, strategy="mass", norm=norm)
        assert tc.binned_calibration_error(
            y, p, n_bins=n_bins, strategy="quantile", norm=norm
        ) == equal(theirs)


def test_probcal_moves_a_tie_across_a_quantile_up_and_ours_leaves_it_below(probcal):
    y, p = np.array([0, 1, 0, 1]), np.array([0.2, 0.5, 0.5, 0.5])  # the median is among the ties
    assert probcal.ece(y, p, n_bins=2, strategy="mass") == equal(l1(y, p, [[0], [1, 2, 3]]))
    ours = tc.binned_calibration_error(y, p, n_bins=2, strategy="quantile")
    assert ours == equal(l1(y, p, [[0, 1, 2, 3]]))  # no forecast has half of all rounds below it


def test_probcal_quantiles_do_not_see_weights_and_ours_do(probcal):
    y, p, weight = np.array([0, 1, 0, 1]), np.array([0.1, 0.3, 0.6, 0.8]), np.array([6, 1, 1, 1])
    theirs = probcal.ece(y, p, n_bins=2, strategy="mass", sample_weight=weight)
    by_rows = [np.abs((weight * (y - p))[half].sum()) for half in (slice(0, 2), slice(2, 4))]
    assert theirs == equal(sum(by_rows) / 9)
    repeated = np.repeat(y, weight), np.repeat(p, weight)
    ours = tc.binned_calibration_error(y, p, n_bins=2, strategy="quantile", sample_weight=weight)
    assert ours == tc.binned_calibration_error(*repeated, n_bins=2, strategy="quantile")
    by_weight = [np.abs((weight * (y - p))[part].sum()) for part in (slice(0, 1), slice(1, 4))]
    assert ours == equal(sum(by_weight) / 9)


@cases(["continuous", "tied"])
def test_probcal_debiased_ece_takes_the_variance_off_each_bin_and_ours_off_the_sum(
    probcal, kind, seed
):
    y, p = KINDS[kind](seed)
    bins = tc.reliability_bins(y, p)
    assert (bins.counts > 1).all()
    share = bins.counts / 600
    left = bins.gap**2 - bins.rate * (1 - bins.rate) / (bins.counts - 1)
    # theirs: roots bin by bin, what is negative counting as 0
    assert probcal.ece_debiased(y, p, strategy="width") == equal(
        share @ np.sqrt(np.maximum(left, 0)), 1e-11
    )
    # ours: negative bins make up for others by chance too large, as in an unbiased estimate of the
    # square they must
    assert tc.binned_calibration_error(y, p, norm="l2", debias=True) == equal(
        math.sqrt(max(0.0, share @ left))
    )


def test_probcal_debiased_ece_stays_above_0_on_average_and_the_square_of_ours_does_not(
    probcal,
):
    rng = np.random.default_rng(0)
    theirs, squares = [], []
    for _ in range(200):
        p = rng.random(300)
        y = (rng.random(300) < p).astype(int)
        bins = tc.reliability_bins(y, p)
        variance = bins.rate * (1 - bins.rate) / (bins.counts - 1)
        squares.append(bins.counts / 300 @ (bins.gap**2 - variance))
        theirs.append(probcal.ece_debiased(y, p, strategy="width"))
    assert abs(np.mean(squares)) < 4 * np.std(squares) / math.sqrt(200)
    assert np.mean(theirs) > 20 * np.std(theirs) / math.sqrt(200)


def _fixed_point(places, masses, grid):
    low, high = 1e-3, 5.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if _smoothed(places, masses, middle, grid) > middle else (low, middle)
        )
    return low


@pytest.mark.slow("integrates numerically")
def test_probcal_smooth_ece_has_its_bandwidth_in_logits_and_ours_in_probabilities(probcal):
    # two rare events, one forecast too low, the other too high: near each other as probabilities,
    # not as logits
    y, p = np.repeat([1, 0, 1, 0], [40, 460, 0, 500]), np.repeat([0.001, 0.08], [500, 500])
    values = np.array([0.001, 0.08])
    masses = np.array([40 - 500 * 0.001, -500 * 0.08]) / 1000
    logits = np.log(values / (1 - values))
    in_logits = _fixed_point(logits, masses, np.linspace(logits[0] - 2, logits[1] + 2, 20_001))
    assert probcal.smooth_ece(y, p) == pytest.approx(in_logits, rel=1e-3)
    mirror = np.concatenate((values, -values)), np.concatenate((masses, masses))
    in_probabilities = _fixed_point(*mirror, np.linspace(0, 1, 20_001))
    assert tc.smooth_ece(y, p) == pytest.approx(in_probabilities, rel=1e-3)
    # too far apart to cancel at all
    assert in_logits == pytest.approx(np.abs(masses).sum(), rel=1e-3)
    assert in_probabilities < 0.95 * in_logits


@pytest.mark.parametrize("bandwidth", [0.05, 0.3, 2.0])
@cases(OPEN)
def test_probcal_squared_kernel_error_is_twice_ours(probcal, kind, seed, bandwidth):
    # its kernel is of the vector (1 - p, p): both entries count, hence the 2
    y, p = KINDS[kind](seed)
    for estimator, unbiased in (("biased", False), ("uq", True)):
        theirs = probcal.skce(y, p, estimator=estimator, kernel="laplace", bandwidth=bandwidth)
        ours = tc.laplace_calibration_error(y, p, scale=bandwidth, squared=True, unbiased=unbiased)
        assert 2 * ours == equal(theirs)


@cases(["endpoints"])
def test_probcal_squared_kernel_error_with_certainty(probcal, kind, seed):
    y, p = KINDS[kind](seed)
    inside = p.clip(1e-12, 1 - 1e-12)  # what it does with 0 and 1
    theirs = probcal.skce(y, p, estimator="uq", kernel="laplace", bandwidth=0.3)
    options = {"scale": 0.3, "squared": True, "unbiased": True}
    assert 2 * tc.laplace_calibration_error(y, inside, **options) == equal(theirs)
    assert 2 * tc.laplace_calibration_error(y, p, **options) == equal(theirs, 1e-11)


def _parts(decomposition):
    return [
        decomposition.score,
        decomposition.miscalibration,
        decomposition.discrimination,
        decomposition.uncertainty,
    ]


@cases(OPEN)
@weighted
def test_probcal_corp_decomposition(corp_reliability, kind, seed, weighting):
    y, p = (column[:300].copy() for column in KINDS[kind](seed))
    y[p == p.min()], y[p == p.max()] = 1, 0  # so that no block has the rate 0 or 1
    weight = weights_of(seed, weighting)
    weight = None if weight is None else weight[:300]
    theirs = corp_reliability(y, p, bands=None, sample_weight=weight)
    ours = tc.reliability_curve(y, p, sample_weight=weight)
    assert 0 < ours.rate[0] <= ours.rate[-1] < 1
    assert _parts(ours.brier) == equal(
        [theirs.brier, theirs.brier_mcb, theirs.brier_dsc, theirs.brier_unc]
    )
    log_loss = [theirs.log_loss, theirs.log_loss_mcb, theirs.log_loss_dsc, theirs.log_loss_unc]
    assert _parts(ours.log) == equal(log_loss)
    assert ours(p) == equal(theirs.pav)
    # probcal may leave neighbouring blocks with equal rates apart; the curves are the same
    assert set(ours.lower) <= set(theirs.block_lo)


def test_probcal_corp_clips_rates_of_0_and_1_and_ours_does_not(corp_reliability):
    y, p = np.array([0, 0, 1, 0, 1, 1]), np.array([0.1, 0.2, 0.4, 0.6, 0.8, 0.9])
    theirs, ours = corp_reliability(y, p, bands=None), tc.reliability_curve(y, p)
    assert ours.rate.tolist() == [0.0, 0.5, 1.0]
    recalibrated = ours.log.score - ours.log.miscalibration
    assert recalibrated == equal(math.log(2) / 3, 1e-15)  # the two rounds in the middle
    clipped = -math.log1p(-1e-12) * 4 / 6
    assert theirs.log_loss - theirs.log_loss_mcb - recalibrated == pytest.approx(clipped, rel=1e-3)


def test_probcal_corp_of_an_impossible_event_is_finite_and_ours_is_not(corp_reliability):
    y, p = np.array([1, 0, 1]), np.array([0.0, 0.5, 0.9])
    assert corp_reliability(y, p, bands=None).log_loss == equal(tc.log_loss(y, p.clip(1e-12, 1)))
    curve = tc.reliability_curve(y, p)
    assert curve.log.score == curve.log.miscalibration == math.inf
    assert math.isfinite(curve.log.discrimination)


def test_probcal_refuses_one_class_and_ours_does_not(probcal):
    y, p = np.zeros(3, int), np.array([0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="both classes"):
        probcal.brier_score(y, p)
    assert tc.brier_score(y, p) == equal(0.14 / 3)


# uncertainty-calibration


@cases(KINDS)
def test_uncal_ece_in_bins_of_equal_width(uncal, kind, seed):
    y, p = KINDS[kind](seed)
    for n_bins in (1, 7, EDGES_OF_NONE):
        assert tc.binned_calibration_error(y, p, n_bins=n_bins) == equal(
            uncal.get_ece(p, y, num_bins=n_bins)
        )


def test_uncal_bins_are_closed_above_and_ours_below(uncal):
    y, p = np.array([0, 1, 0]), np.array([0.25, 0.5, 0.75])
    assert uncal.get_ece(p, y, num_bins=2) == equal(l1(y, p, [[0, 1], [2]]))
    assert tc.binned_calibration_error(y, p, n_bins=2) == equal(l1(y, p, [[0], [1, 2]]))


@cases(["continuous", "skewed"])
def test_uncal_ece_in_bins_of_equal_mass(uncal, kind, seed):
    y, p = KINDS[kind](seed)
    for n_bins in (1, 4, 15):  # divisors of the number of rounds
        ours = tc.binned_calibration_error(y, p, n_bins=n_bins, strategy="quantile")
        assert ours == equal(uncal.get_ece_em(p, y, num_bins=n_bins))


@cases(["tied", "endpoints"])
def test_uncal_ece_in_bins_of_equal_mass_with_ties(uncal, kind, seed):
    y, p = KINDS[kind](seed)
    # an edge among ties is closed above there: the tie stays below, as here
    for n_bins in (1, 4, 15):
        ours = tc.binned_calibration_error(y, p, n_bins=n_bins, strategy="quantile")
        assert ours == equal(uncal.get_ece_em(p, y, num_bins=n_bins))


def test_uncal_makes_the_first_bins_larger_when_bins_do_not_divide_rounds_and_ours_spreads_the_rest(
    uncal,
):
    p = np.arange(1, 7) / 10
    y = np.array([0, 1, 0, 1, 0, 1])
    assert uncal.get_ece_em(p, y, num_bins=4) == equal(l1(y, p, [[0, 1], [2, 3], [4], [5]]))
    assert tc.binned_calibration_error(y, p, n_bins=4, strategy="quantile") == equal(
        l1(y, p, [[0, 1], [2], [3, 4], [5]])
    )


@cases(["tied", "endpoints"])
def test_uncal_binning_error_is_ours_by_value(uncal, kind, seed):
    y, p = KINDS[kind](seed)
    assert tc.calibration_error_by_value(y, p) == equal(
        uncal.get_binning_ce(p, y, p=1, debias=False)
    )


@cases(KINDS)
def test_uncal_l2(uncal, kind, seed):
    y, p = KINDS[kind](seed)
    for n_bins in (1, 7, EDGES_OF_NONE):
        bins = uncal.bin(
            list(zip(p, y, strict=True)), uncal.get_equal_prob_bins(p, num_bins=n_bins)
        )
        options = {"n_bins": n_bins, "norm": "l2"}
        assert tc.binned_calibration_error(y, p, **options) == equal(uncal.plugin_ce(bins, power=2))
        ours = tc.binned_calibration_error(y, p, debias=True, **options)
        assert ours**2 == equal(uncal.unbiased_l2_ce(bins) ** 2)
        assert ours == equal(uncal.unbiased_l2_ce(bins), 1e-10)  # the root of a difference


@cases(["continuous", "tied", "endpoints"])
@pytest.mark.usefixtures("global_seed")
def test_uncal_debiased_ece_is_a_simulation_of_ours(uncal, kind, seed):
    y, p = KINDS[kind](seed)
    bins = tc.reliability_bins(y, p)
    deviation = np.sqrt(bins.rate * (1 - bins.rate) / bins.counts)
    # of one resample: the variance of |x| for normal x is at most that of x
    spread = math.sqrt((bins.counts / 600) ** 2 @ deviation**2)
    groups = uncal.bin(list(zip(p, y, strict=True)), uncal.get_equal_prob_bins(p, num_bins=15))
    theirs = uncal.normal_debiased_ce(groups, power=1, resamples=2000)
    ours = tc.binned_calibration_error(y, p, debias=True)
    assert ours > 0
    assert ours == pytest.approx(theirs, abs=5 * spread / math.sqrt(2000))


@pytest.mark.usefixtures("global_seed")
def test_uncal_debiased_ece_may_be_negative_and_ours_stops_at_0(uncal):
    y, p = np.tile([0, 1], 50), np.full(100, 0.5)
    assert uncal.get_ece(p, y, debias=True, num_bins=1) < 0
    assert tc.binned_calibration_error(y, p, n_bins=1, debias=True) == 0.0


def test_uncal_debiased_ece_refuses_empty_bins_and_ours_leaves_them_out(uncal):
    y, p = np.array([0, 1, 1, 1]), np.array([0.1, 0.1, 0.9, 0.9])
    with pytest.raises(ValueError, match="at least 2 points"):
        uncal.get_ece(p, y, debias=True, num_bins=3)
    ours = tc.binned_calibration_error(y, p, n_bins=3, debias=True)
    assert ours == tc.binned_calibration_error(y, p, n_bins=2, debias=True)
    assert ours > 0
