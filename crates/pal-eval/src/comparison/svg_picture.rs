//! SVG drawing with styles for light and dark screens.

use std::fmt::Write;

/// Colors of all classes, on light and on dark ground.
const STYLE: &str = "\
.ground{fill:#ffffff}.ink{fill:#1f2328}.faint{fill:#656d76}.grid{stroke:#d8dee4}.axis{stroke:#8c959f}\
.ours{fill:#0969da}.peers{fill:#8c959f}.lost{fill:#cf222e}.limit{stroke:#1a7f37;fill:none}.limited{fill:#1a7f37}\
@media (prefers-color-scheme:dark){\
.ground{fill:#0d1117}.ink{fill:#e6edf3}.faint{fill:#9198a1}.grid{stroke:#2f353d}.axis{stroke:#6e7681}\
.ours{fill:#4493f8}.peers{fill:#6e7681}.lost{fill:#f85149}.limit{stroke:#3fb950;fill:none}.limited{fill:#3fb950}}\
text{font:13px system-ui,sans-serif}.title{font-size:17px;font-weight:600}.small{font-size:11px}";

/// Alignment of a text at its point.
#[derive(Clone, Copy)]
pub(crate) enum TextAnchor {
    Start,
    Middle,
    End,
}

/// A picture that is being drawn.
pub(crate) struct SvgPicture {
    width: f64,
    height: f64,
    body: String,
}

impl SvgPicture {
    pub(crate) fn new(width: f64, height: f64) -> SvgPicture {
        let mut picture = SvgPicture { width, height, body: String::new() };
        picture.bar("ground", (0.0, 0.0), (width, height));
        picture
    }

    pub(crate) fn text(&mut self, class: &str, anchor: TextAnchor, at: (f64, f64), text: &str) {
        let anchor = match anchor {
            TextAnchor::Start => "start",
            TextAnchor::Middle => "middle",
            TextAnchor::End => "end",
        };
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let (x, y) = at;
        self.add(format_args!(
            r#"<text class="{class}" text-anchor="{anchor}" x="{x:.1}" y="{y:.1}">{text}</text>"#
        ));
    }

    pub(crate) fn bar(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) {
        let ((x, y), (width, height)) = (at, size);
        let width = width.max(0.0);
        self.add(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#
        ));
    }

    pub(crate) fn dot(&mut self, class: &str, at: (f64, f64)) {
        self.add(format_args!(r#"<circle class="{class}" cx="{:.1}" cy="{:.1}" r="5"/>"#, at.0, at.1));
    }

    /// A line through points; dashed ones are limits.
    pub(crate) fn line(&mut self, class: &str, is_dashed: bool, points: &[(f64, f64)]) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dashes = if is_dashed { r#" stroke-dasharray="5 4""# } else { "" };
        self.add(format_args!(
            r#"<polyline class="{class}" fill="none" stroke-width="1.5"{dashes} points="{}"/>"#,
            points.join(" ")
        ));
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.body, "{element}");
    }

    pub(crate) fn finish(self) -> String {
        let SvgPicture { width, height, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n<style>{STYLE}</style>\n{body}</svg>\n"
        )
    }
}
