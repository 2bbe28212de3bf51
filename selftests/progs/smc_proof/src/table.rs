// SPDX-License-Identifier: GPL-2.0

//! Tables with a label column on the left and numbers right-aligned.

/// Lays out rows below a header, each ended by a newline.
pub fn layout(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            line.push_str(&if column == 0 {
                format!(" {cell:<width$}")
            } else {
                format!("  {cell:>width$}")
            });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A number of bytes in a unit that a person can read.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if count < 1000 {
        return format!("{count} bytes");
    }
    let mut value = count as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        let text = layout(&[
            row(&["", "TCP", "SMC-R"]),
            row(&["requests/s", "12345", "9"]),
        ]);
        assert_eq!(
            text,
            "                TCP  SMC-R\n  requests/s  12345      9\n"
        );
        assert_eq!(layout(&[]), "");
    }

    #[test]
    fn bytes_get_a_unit() {
        assert_eq!(bytes(0), "0 bytes");
        assert_eq!(bytes(999), "999 bytes");
        assert_eq!(bytes(1000), "1.0 kB");
        assert_eq!(bytes(999_960), "1.0 MB");
        assert_eq!(bytes(12_340_000_000), "12.3 GB");
    }
}
