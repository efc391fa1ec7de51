//! Styles by meaning. The screen decides whether colors are written.

use ratatui_core::style::{Color, Modifier, Style};

/// Styles of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Theme {
    palette: Palette,
}

/// Colors of a theme.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Palette {
    /// The sixteen standard colors, in the user's own palette.
    #[default]
    Terminal,
    /// Fixed colors for a dark background.
    Dark,
    /// Fixed colors for a light background.
    Light,
    /// Like [`Palette::Dark`], with blue and orange instead of green and red.
    DarkDaltonized,
    /// Like [`Palette::Light`], with blue and orange instead of green and red.
    LightDaltonized,
}

/// Names of the themes, the default one first.
const NAMES: [(&str, Palette); 5] = [
    ("terminal", Palette::Terminal),
    ("dark", Palette::Dark),
    ("light", Palette::Light),
    ("dark-daltonized", Palette::DarkDaltonized),
    ("light-daltonized", Palette::LightDaltonized),
];

/// Meaning of a color.
#[derive(Clone, Copy)]
enum Role {
    Secondary,
    Accent,
    Keyword,
    Good,
    Bad,
    Warning,
}

impl Theme {
    /// The theme of a name; `None` if there is none.
    pub fn named(name: &str) -> Option<Theme> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, palette)| Theme { palette: *palette })
    }

    /// Names of all themes, the default one first.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    fn color(self, role: Role) -> Color {
        use Role::{Accent, Bad, Good, Keyword, Secondary, Warning};
        match (self.palette, role) {
            (Palette::Terminal, Secondary) => Color::Reset,
            (Palette::Terminal, Accent) => Color::Cyan,
            (Palette::Terminal, Keyword) => Color::Magenta,
            (Palette::Terminal, Good) => Color::Green,
            (Palette::Terminal, Bad) => Color::Red,
            (Palette::Terminal, Warning) => Color::Yellow,
            (Palette::Dark | Palette::DarkDaltonized, Secondary) => Color::Indexed(246),
            (Palette::Dark | Palette::DarkDaltonized, Accent) => Color::Indexed(80),
            (Palette::Dark | Palette::DarkDaltonized, Keyword) => Color::Indexed(176),
            (Palette::Dark, Good) => Color::Indexed(114),
            (Palette::Dark, Bad) => Color::Indexed(210),
            (Palette::Dark | Palette::DarkDaltonized, Warning) => Color::Indexed(221),
            (Palette::DarkDaltonized, Good) => Color::Indexed(75),
            (Palette::DarkDaltonized, Bad) => Color::Indexed(215),
            (Palette::Light | Palette::LightDaltonized, Secondary) => Color::Indexed(240),
            (Palette::Light | Palette::LightDaltonized, Accent) => Color::Indexed(25),
            (Palette::Light | Palette::LightDaltonized, Keyword) => Color::Indexed(90),
            (Palette::Light, Good) => Color::Indexed(22),
            (Palette::Light, Bad) => Color::Indexed(124),
            (Palette::Light | Palette::LightDaltonized, Warning) => Color::Indexed(94),
            (Palette::LightDaltonized, Good) => Color::Indexed(26),
            (Palette::LightDaltonized, Bad) => Color::Indexed(130),
        }
    }

    fn style(self, role: Role) -> Style {
        Style::new().fg(self.color(role))
    }

    /// Secondary text.
    pub fn dim(self) -> Style {
        match self.palette {
            Palette::Terminal => Style::new().add_modifier(Modifier::DIM),
            _ => self.style(Role::Secondary),
        }
    }

    /// Headings and the user's prompts.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Emphasis, in italics.
    pub fn leaning(self) -> Style {
        Style::new().add_modifier(Modifier::ITALIC)
    }

    /// Strikethrough.
    pub fn struck(self) -> Style {
        Style::new().add_modifier(Modifier::CROSSED_OUT)
    }

    /// Names, paths and selections.
    pub fn accent(self) -> Style {
        self.style(Role::Accent)
    }

    /// Inline code.
    pub fn code(self) -> Style {
        self.style(Role::Accent)
    }

    /// Keywords of a programming language.
    pub fn keyword(self) -> Style {
        self.style(Role::Keyword)
    }

    /// Success and additions.
    pub fn good(self) -> Style {
        self.style(Role::Good)
    }

    /// Errors and removals.
    pub fn bad(self) -> Style {
        self.style(Role::Bad)
    }

    /// Warnings.
    pub fn warning(self) -> Style {
        self.style(Role::Warning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_theme_tells_additions_from_removals_and_warnings() {
        for name in Theme::names() {
            let theme = Theme::named(name).unwrap();
            let colors = [theme.good().fg, theme.bad().fg, theme.warning().fg, theme.accent().fg];
            for (at, color) in colors.iter().enumerate() {
                assert!(!colors[..at].contains(color), "{name}: {colors:?}");
            }
        }
        assert_eq!(Theme::named("solarized"), None);
        assert_eq!(Theme::named("terminal"), Some(Theme::default()));
    }
}
