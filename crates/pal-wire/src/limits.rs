//! How much of the provider's rate limits is left, as the heads of its answers say.

/// The tightest of the limits that the head of an answer tells of.
#[derive(Clone, PartialEq, Debug)]
pub struct RateLimit {
    /// What is limited, as the provider names it: `requests`, `tokens`, `input-tokens` or `output-tokens`.
    pub of: &'static str,
    /// How much may be used until the limit is reset, from 0 to 1 of all.
    pub left: f64,
}

/// What is limited.
const LIMITED: [&str; 4] = ["requests", "tokens", "input-tokens", "output-tokens"];

impl RateLimit {
    /// Reads the head of an answer; none if it tells of no limit. `header` finds the first header of a name given in lower case.
    ///
    /// ```
    /// use pal_wire::RateLimit;
    ///
    /// let header = |name: &str| match name {
    ///     "anthropic-ratelimit-tokens-limit" => Some("80000"),
    ///     "anthropic-ratelimit-tokens-remaining" => Some("20000"),
    ///     _ => None,
    /// };
    /// assert_eq!(RateLimit::read(header), Some(RateLimit { of: "tokens", left: 0.25 }));
    /// ```
    pub fn read<'h>(header: impl Fn(&str) -> Option<&'h str>) -> Option<RateLimit> {
        let number = |name: &str| {
            let number: f64 = header(name)?.trim().parse().ok()?;
            (number.is_finite() && number >= 0.0).then_some(number)
        };
        // Claude and GPT have the same words in another order.
        let share = |of: &str, [limit, remaining]: [String; 2]| {
            let limit = number(&limit).filter(|limit| *limit > 0.0)?;
            let left = number(&remaining)? / limit;
            LIMITED.iter().find(|name| **name == of).map(|of| RateLimit { of, left: left.min(1.0) })
        };
        let both = LIMITED.iter().flat_map(|of| {
            let anthropic = ["limit", "remaining"].map(|what| format!("anthropic-ratelimit-{of}-{what}"));
            let openai = ["limit", "remaining"].map(|what| format!("x-ratelimit-{what}-{of}"));
            [share(of, anthropic), share(of, openai)]
        });
        both.flatten().min_by(|one, other| one.left.total_cmp(&other.left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &[(&str, &'static str)]) -> Option<RateLimit> {
        RateLimit::read(|name| head.iter().find(|(key, _)| *key == name).map(|(_, value)| *value))
    }

    #[test]
    fn the_tightest_limit_counts_in_both_spellings() {
        let head = [
            ("anthropic-ratelimit-requests-limit", "1000"),
            ("anthropic-ratelimit-requests-remaining", "999"),
            ("anthropic-ratelimit-output-tokens-limit", "16000"),
            ("anthropic-ratelimit-output-tokens-remaining", "1600"),
        ];
        assert_eq!(read(&head), Some(RateLimit { of: "output-tokens", left: 0.1 }));
        let head = [
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-tokens", "75000"),
        ];
        assert_eq!(read(&head), Some(RateLimit { of: "tokens", left: 0.5 }));
    }

    #[test]
    fn what_is_no_limit_says_nothing() {
        for (limit, remaining) in
            [("0", "0"), ("many", "3"), ("10", ""), ("10", "-1"), ("NaN", "1"), ("inf", "1")]
        {
            let head = [("x-ratelimit-limit-tokens", limit), ("x-ratelimit-remaining-tokens", remaining)];
            assert_eq!(read(&head), None, "{limit} {remaining}");
        }
        assert_eq!(read(&[]), None);
        let more = [("x-ratelimit-limit-tokens", "10"), ("x-ratelimit-remaining-tokens", "20")];
        assert_eq!(read(&more).map(|limit| limit.left), Some(1.0));
    }
}
