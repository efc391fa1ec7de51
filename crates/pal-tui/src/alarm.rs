//! Alarms on the terminal: the bell, and a notification of the desktop where the terminal emulator shows them.

/// Control sequence by which a terminal emulator shows a notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NotificationProtocol {
    /// None: only the bell.
    #[default]
    Bell,
    /// OSC 9: iTerm2, WezTerm, Ghostty, kitty.
    Osc9,
    /// OSC 777: foot, urxvt.
    Osc777,
}

impl NotificationProtocol {
    /// Protocol of the terminal emulator that these environment variables describe.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> NotificationProtocol {
        let has = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        // A multiplexer does not pass them on, but it shows the bell.
        if has("TMUX") || has("STY") {
            return NotificationProtocol::Bell;
        }
        let program = variable("TERM_PROGRAM").unwrap_or_default();
        let term = variable("TERM").unwrap_or_default();
        match program.as_str() {
            "iTerm.app" | "WezTerm" | "ghostty" => NotificationProtocol::Osc9,
            _ if has("KITTY_WINDOW_ID") => NotificationProtocol::Osc9,
            _ if term.starts_with("foot") || term.starts_with("rxvt") => NotificationProtocol::Osc777,
            _ => NotificationProtocol::Bell,
        }
    }

    /// Bytes that ring the bell and show a notification.
    pub(crate) fn alarm(self, text: &str) -> String {
        // Control characters would end the sequence, and a semicolon separates its parts.
        let plain: String = text
            .chars()
            .map(|letter| if letter.is_control() || letter == ';' { ',' } else { letter })
            .collect();
        match self {
            NotificationProtocol::Bell => String::from("\x07"),
            NotificationProtocol::Osc9 => format!("\x1b]9;{plain}\x1b\\\x07"),
            NotificationProtocol::Osc777 => format!("\x1b]777;notify;pal;{plain}\x1b\\\x07"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_follows_from_the_terminal() {
        let check = |variables: &[(&str, &str)], expected: NotificationProtocol| {
            let find = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(NotificationProtocol::detect(find), expected, "{variables:?}");
        };
        check(&[("TERM", "xterm-256color")], NotificationProtocol::Bell);
        check(&[("TERM_PROGRAM", "iTerm.app")], NotificationProtocol::Osc9);
        check(&[("TERM_PROGRAM", "ghostty"), ("TMUX", "/tmp/x")], NotificationProtocol::Bell);
        check(&[("TERM", "foot-extra")], NotificationProtocol::Osc777);
        check(&[("TERM", "xterm-kitty"), ("KITTY_WINDOW_ID", "1")], NotificationProtocol::Osc9);
    }

    #[test]
    fn an_alarm_cannot_leave_its_sequence() {
        let bytes = NotificationProtocol::Osc777.alarm("cache break; $2.10\x1b]0;x\x07");
        assert_eq!(bytes, "\x1b]777;notify;pal;cache break, $2.10,]0,x,\x1b\\\x07");
        assert_eq!(NotificationProtocol::Bell.alarm("x"), "\x07");
    }
}
