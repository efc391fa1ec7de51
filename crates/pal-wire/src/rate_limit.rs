//! Rate limits from response headers.

/// Tightest rate limit reported in response headers.
#[derive(Clone, PartialEq, Debug)]
pub struct RateLimit {
    /// Limited resource, as the provider names it: `requests`, `tokens`, `input-tokens` or `output-tokens`.
    pub resource: &'static str,
    /// Share of the limit that remains until its reset, from 0 to 1.
    pub remaining_share: f64,
}

/// Names of limited resources.
const LIMITED: [&str; 4] = ["requests", "tokens", "input-tokens", "output-tokens"];

impl RateLimit {
    /// Reads the rate limits from response headers; none if there are none. `header` returns the first header with a
    /// lower-case name.
    ///
    /// ```
    /// use pal_wire::RateLimit;
    ///
    /// let header = |name: &str| match name {
    ///     "anthropic-ratelimit-tokens-limit" => Some("80000"),
    ///     "anthropic-ratelimit-tokens-remaining" => Some("20000"),
    ///     _ => None,
    /// };
    /// assert_eq!(
    ///     RateLimit::from_headers(header),
    ///     Some(RateLimit { resource: "tokens", remaining_share: 0.25 })
    /// );
    /// ```
    pub fn from_headers<'h>(header: impl Fn(&str) -> Option<&'h str>) -> Option<RateLimit> {
        let number = |name: &str| {
            let number: f64 = header(name)?.trim().parse().ok()?;
            (number.is_finite() && number >= 0.0).then_some(number)
        };
        // Anthropic and OpenAI use the same words in different order.
        let share = |of: &str, [limit, remaining]: [String; 2]| {
            let limit = number(&limit).filter(|limit| *limit > 0.0)?;
            let left = number(&remaining)? / limit;
            LIMITED
                .iter()
                .find(|name| **name == of)
                .map(|of| RateLimit { resource: of, remaining_share: left.min(1.0) })
        };
        let both = LIMITED.iter().flat_map(|of| {
            let anthropic = ["limit", "remaining"].map(|what| format!("anthropic-ratelimit-{of}-{what}"));
            let openai = ["limit", "remaining"].map(|what| format!("x-ratelimit-{what}-{of}"));
            [share(of, anthropic), share(of, openai)]
        });
        both.flatten().min_by(|one, other| one.remaining_share.total_cmp(&other.remaining_share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &[(&str, &'static str)]) -> Option<RateLimit> {
        RateLimit::from_headers(|name| head.iter().find(|(key, _)| *key == name).map(|(_, value)| *value))
    }

    #[test]
    fn tightest_limit_is_read_from_both_header_styles() {
        let head = [
            ("anthropic-ratelimit-requests-limit", "1000"),
            ("anthropic-ratelimit-requests-remaining", "999"),
            ("anthropic-ratelimit-output-tokens-limit", "16000"),
            ("anthropic-ratelimit-output-tokens-remaining", "1600"),
        ];
        assert_eq!(read(&head), Some(RateLimit { resource: "output-tokens", remaining_share: 0.1 }));
        let head = [
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-tokens", "75000"),
        ];
        assert_eq!(read(&head), Some(RateLimit { resource: "tokens", remaining_share: 0.5 }));
    }

    #[test]
    fn invalid_limits_are_ignored() {
        for (limit, remaining) in
            [("0", "0"), ("many", "3"), ("10", ""), ("10", "-1"), ("NaN", "1"), ("inf", "1")]
        {
            let head = [("x-ratelimit-limit-tokens", limit), ("x-ratelimit-remaining-tokens", remaining)];
            assert_eq!(read(&head), None, "{limit} {remaining}");
        }
        assert_eq!(read(&[]), None);
        let more = [("x-ratelimit-limit-tokens", "10"), ("x-ratelimit-remaining-tokens", "20")];
        assert_eq!(read(&more).map(|limit| limit.remaining_share), Some(1.0));
    }
}
