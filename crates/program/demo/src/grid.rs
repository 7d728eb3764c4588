//! Rows of characters with looks: one drawing for terminals and pictures.

/// Looks that the view uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Look {
    Plain,
    Bold,
    Dim,
    Blue,
    OnBlue,
}

/// A character, one column wide.
pub type Cell = (char, Look);

/// Rows of equal width, from the top down.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    pub width: usize,
    pub rows: Vec<Vec<Cell>>,
}

/// Text in one look.
pub fn cells(text: &str, look: Look) -> impl Iterator<Item = Cell> {
    text.chars().map(move |c| (c, look))
}

impl Grid {
    pub fn new(width: usize) -> Grid {
        Grid { width, rows: Vec::new() }
    }

    /// Adds a row, cut or filled with blanks to the width.
    pub fn push(&mut self, row: impl Iterator<Item = Cell>) {
        let blanks = std::iter::repeat((' ', Look::Plain));
        self.rows.push(row.chain(blanks).take(self.width).collect());
    }

    /// Adds a bar, blue up to a share of the width, with text in its middle.
    pub fn bar(&mut self, share: f64, text: &str) {
        let width = self.width;
        let filled = (width as f64 * share).round() as usize;
        let text = format!("{text:^width$}");
        let look = |x| if x < filled { Look::OnBlue } else { Look::Blue };
        self.push(text.chars().enumerate().map(|(x, c)| (c, look(x))));
    }

    /// Adds a frame with a title, and lines in it.
    pub fn framed(&mut self, title: &str, lines: impl Iterator<Item = (String, Look)>) {
        let inner = self.inner();
        self.push(cells(&format!("┌{title:─<inner$.inner$}┐"), Look::Plain));
        for (text, look) in lines {
            let text = format!("{text:<inner$.inner$}");
            let side = || cells("│", Look::Plain);
            self.push(side().chain(cells(&text, look)).chain(side()));
        }
        self.push(cells(&format!("└{:─<inner$}┘", ""), Look::Plain));
    }

    /// Cuts or fills with blank rows to a height.
    pub fn fit(&mut self, height: usize) {
        self.rows.resize(height, vec![(' ', Look::Plain); self.width]);
    }

    /// Columns inside a frame.
    pub fn inner(&self) -> usize {
        self.width.saturating_sub(2)
    }

    #[cfg(test)]
    pub fn text(&self) -> String {
        let lines = self.rows.iter().map(|row| row.iter().map(|cell| cell.0).chain(['\n']));
        lines.flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_and_filled_to_the_width() {
        let mut grid = Grid::new(6);
        grid.push(cells("ab", Look::Bold));
        grid.framed("title", ["c", "defgh"].map(|text| (text.to_owned(), Look::Dim)).into_iter());
        assert_eq!(grid.text(), "ab    \n┌titl┐\n│c   │\n│defg│\n└────┘\n");
        assert_eq!(grid.rows[2][..2], [('│', Look::Plain), ('c', Look::Dim)]);
        let mut narrow = Grid::new(1);
        narrow.framed("title", std::iter::once(("c".to_owned(), Look::Dim)));
        narrow.bar(1.0, "text");
        narrow.fit(5);
        assert_eq!(narrow.text(), "┌\n│\n└\nt\n \n");
    }

    #[test]
    fn a_bar_is_filled_to_its_share() {
        let mut grid = Grid::new(8);
        grid.bar(0.5, "1234");
        assert_eq!(grid.text(), "  1234  \n");
        let filled = |look| grid.rows[0].iter().filter(|cell| cell.1 == look).count();
        assert_eq!((filled(Look::OnBlue), filled(Look::Blue)), (4, 4));
    }
}
