//! Exact confidence limits of a small count.

/// The mean of a Poisson distribution that has given `count` lies between these limits with 95 %
/// confidence: 2.5 % may be on either side (the quantiles 0.025 of chi-square with `2 * count`
/// degrees of freedom and 0.975 with two more, halved). When the count is 0 there is only one side,
/// and its limit is the 95 % one, about 3.
#[must_use]
pub fn poisson_limits(count: u64) -> (f64, f64) {
    match count {
        0 => (0.0, -(0.05_f64.ln())),
        1..=200 => {
            // P(X >= count) grows with the mean, P(X <= count) falls.
            let low = solve(count, |mean| 1.0 - at_most(count - 1, mean) > 0.025);
            let high = solve(count, |mean| at_most(count, mean) < 0.025);
            (low, high)
        }
        _ => {
            let c = count as f64;
            (wilson_hilferty(c, -Z975), wilson_hilferty(c + 1.0, Z975))
        }
    }
}

/// Sums as uncertain as that of this number of equal parts are near enough to a normal
/// distribution.
pub(super) const SKEWED_BELOW: f64 = 300.0;

/// Limits of a sum of parts of different size that is as uncertain as the number `count` of a
/// Poisson distribution, which need not be whole: the quantiles of the gamma distribution between
/// those of the exact limits, as a sum has not the steps that make these wide (Bohm and Zech 2014).
pub(super) fn sum_limits(count: f64) -> (f64, f64) {
    (wilson_hilferty(count + 0.5, -Z975).max(0.0), wilson_hilferty(count + 0.5, Z975))
}

const Z975: f64 = 1.959_963_984_540_054;

/// Half a chi-square quantile with `2 * c` degrees of freedom, by its cube root, which is nearly
/// normal.
fn wilson_hilferty(c: f64, z: f64) -> f64 {
    c * (1.0 - 1.0 / (9.0 * c) + z / (3.0 * c.sqrt())).powi(3)
}

/// P(X <= count) of a Poisson distribution.
fn at_most(count: u64, mean: f64) -> f64 {
    let mut term = (-mean).exp();
    let mut sum = term;
    for i in 1..=count {
        term *= mean / i as f64;
        sum += term;
    }
    sum
}

/// The least mean for which `beyond` holds, which it does from there on.
fn solve(count: u64, beyond: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 2.0 * count as f64 + 10.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if beyond(middle) { high = middle } else { low = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_tables() {
        // Garwood (1936), as in common tables.
        let table = [
            (1, 0.0253, 5.572),
            (2, 0.242, 7.225),
            (5, 1.623, 11.668),
            (10, 4.795, 18.390),
            (20, 12.217, 30.888),
            (30, 20.241, 42.827),
            (100, 81.364, 121.627),
        ];
        for (count, low, high) in table {
            let found = poisson_limits(count);
            assert!((found.0 - low).abs() < 0.001, "{count}: {found:?}");
            assert!((found.1 - high).abs() < 0.001, "{count}: {found:?}");
        }
        assert!((poisson_limits(0).1 - 2.996).abs() < 0.001);
    }

    #[test]
    fn the_approximation_joins_smoothly() {
        let (low, high) = poisson_limits(200);
        let c = 200.0;
        assert!((wilson_hilferty(c, -Z975) - low).abs() < 0.02);
        assert!((wilson_hilferty(c + 1.0, Z975) - high).abs() < 0.02);
    }
}
