//! Exact confidence limits of a share: how many of `total` packets are of a class that `class` of
//! `all` samples belong to.

/// Number of packets above which what is sampled is not taken away from what is left: the
/// difference is far below what 64-bit numbers with a fraction can resolve.
const MOST_COUNTED: u64 = 1 << 33;

/// Limits between which the number of packets of the class lies with 95 % confidence, 2.5 % being
/// on either side; from the hypergeometric distribution, or the binomial one where packets are too
/// many to be counted (Clopper and Pearson 1934). Meant for few samples: the work grows with
/// `class`.
pub(super) fn share_limits(class: u64, all: u64, total: u64) -> (f64, f64) {
    let (least, most) = (class as f64, total as f64 - (all - class) as f64);
    let at_most: &dyn Fn(u64, f64) -> f64 = match total <= MOST_COUNTED {
        true => &|count, packets| hypergeometric(count, all, total as f64, packets.round()),
        false => &|count, packets| binomial(count, all, packets / total as f64),
    };
    // The more packets of the class there are, the less likely is it to see few of them.
    let low = match class {
        0 => 0.0,
        _ => first(least, most, |packets| 1.0 - at_most(class - 1, packets) > 0.025),
    };
    let high = first(least, most, |packets| at_most(class, packets) < tail(class));
    (low, high)
}

/// Returns the probability beyond the upper limit. Without any sample there is no lower limit that
/// could be missed.
fn tail(class: u64) -> f64 {
    if class == 0 { 0.05 } else { 0.025 }
}

/// The least number from which on `beyond` holds.
fn first(mut low: f64, mut high: f64, beyond: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if beyond(middle) {
            high = middle
        } else {
            low = middle
        }
        if high - low < 1e-6 * high {
            break;
        }
    }
    high
}

/// P(X <= count) of the samples of a class with `marked` of `total` packets, `all` being drawn.
fn hypergeometric(count: u64, all: u64, total: f64, marked: f64) -> f64 {
    let n = all as f64;
    let whole = ln_choose(total, n);
    (0..=count)
        .map(|i| i as f64)
        .filter(|i| *i <= marked && n - i <= total - marked)
        .map(|i| (ln_choose(marked, i) + ln_choose(total - marked, n - i) - whole).exp())
        .sum()
}

/// P(X <= count) of `all` draws with probability `p`.
fn binomial(count: u64, all: u64, p: f64) -> f64 {
    let n = all as f64;
    (0..=count)
        .map(|i| i as f64)
        .map(|i| (ln_choose(n, i) + i * p.ln() + (n - i) * (-p).ln_1p()).exp())
        .sum()
}

fn ln_choose(n: f64, k: f64) -> f64 {
    if k == 0.0 || k == n {
        return 0.0;
    }
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// Stirling's series, whose error is below 1e-12 from 10 on.
fn ln_factorial(n: f64) -> f64 {
    if n < 10.0 {
        return (2..=n as u64).map(|i| (i as f64).ln()).sum();
    }
    let inverse = 1.0 / n;
    let square = inverse * inverse;
    let series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0)));
    n * n.ln() - n + 0.5 * (std::f64::consts::TAU * n).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::poisson_limits;

    #[test]
    fn factorials() {
        let mut exact = 0.0;
        for n in 1..50 {
            exact += f64::from(n).ln();
            assert!((ln_factorial(f64::from(n)) - exact).abs() < 1e-9, "{n}");
        }
        assert!((ln_choose(52.0, 5.0).exp() - 2_598_960.0).abs() < 0.01);
    }

    /// Clopper and Pearson, as in common tables: 3 of 20, 5 of 10.
    #[test]
    fn shares_of_very_many_packets_are_binomial() {
        let total = 1_u64 << 40;
        for (class, all, low, high) in [(3, 20, 0.0321, 0.3789), (5, 10, 0.1871, 0.8129)] {
            let found = share_limits(class, all, total);
            assert!((found.0 / total as f64 - low).abs() < 0.0002, "{found:?}");
            assert!((found.1 / total as f64 - high).abs() < 0.0002, "{found:?}");
            let counted = share_limits(class, all, 1 << 30);
            assert!((counted.0 / (1 << 30) as f64 - low).abs() < 0.0002, "{counted:?}");
        }
    }

    #[test]
    fn small_shares_of_many_samples_are_poisson() {
        let found = share_limits(10, 100_000, 100_000_000);
        let (low, high) = poisson_limits(10);
        assert!((found.0 / 1000.0 / low - 1.0).abs() < 0.001, "{found:?}");
        assert!((found.1 / 1000.0 / high - 1.0).abs() < 0.001, "{found:?}");
    }

    /// Every outcome of every small population, counted out.
    #[test]
    fn the_limits_hold_for_whole_populations() {
        let (total, all) = (40_u64, 15_u64);
        for marked in 0..=total {
            let mut covered = 0.0;
            for class in 0..=all.min(marked) {
                if all - class > total - marked {
                    continue;
                }
                let (low, high) = share_limits(class, all, total);
                let p = hypergeometric(class, all, total as f64, marked as f64)
                    - if class == 0 {
                        0.0
                    } else {
                        hypergeometric(class - 1, all, total as f64, marked as f64)
                    };
                if low - 0.5 <= marked as f64 && marked as f64 <= high + 0.5 {
                    covered += p;
                }
            }
            assert!(covered > 0.9499, "{covered} at {marked} of {total}");
        }
    }
}
