//! Confidence intervals by resampling sessions: how much a ratio of sums depends on which sessions were recorded.

/// Number of resamples.
const RESAMPLES: usize = 2_000;
/// Share of the resamples outside of the interval, on each side.
const OUTSIDE: f64 = 0.025;

/// 95% interval of the ratio of two sums over the sessions, given as pairs; none for fewer than two sessions. The same pairs always
/// give the same interval.
pub(crate) fn ratio_interval(pairs: &[(f64, f64)]) -> Option<(f64, f64)> {
    if pairs.len() < 2 {
        return None;
    }
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        // Xorshift: any sequence without a visible pattern does.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % pairs.len()
    };
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let (mut own, mut other) = (0.0, 0.0);
            for _ in 0..pairs.len() {
                let pair = pairs[next()];
                own += pair.0;
                other += pair.1;
            }
            (other > 0.0).then_some(own / other)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let outside = (ratios.len() as f64 * OUTSIDE) as usize;
    Some((*ratios.get(outside)?, *ratios.get(ratios.len().checked_sub(outside + 1)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_holds_the_ratio_and_narrows_with_equal_sessions() {
        let mixed: Vec<(f64, f64)> = (1..=40).map(|at| (f64::from(at % 4), 2.0)).collect();
        let (low, high) = ratio_interval(&mixed).unwrap();
        assert!(low < 0.75 && 0.75 < high && high - low > 0.1, "{low} {high}");
        assert_eq!(ratio_interval(&mixed), Some((low, high)));
        let equal = vec![(1.0, 2.0); 40];
        assert_eq!(ratio_interval(&equal), Some((0.5, 0.5)));
        assert_eq!(ratio_interval(&[(1.0, 2.0)]), None);
    }
}
