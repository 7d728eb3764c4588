//! Suggestions for misspelt words.

/// Returns the candidate with the smallest edit distance, if that is small.
pub fn closest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let length = word.chars().count();
    let allowed = (length / 3).clamp(1, 3);
    candidates
        .iter()
        // A much longer or shorter word is no typo, and need not be compared.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed)
        .map(|candidate| (distance(word, candidate), *candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the minimum number of letters to insert, remove, replace or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut least =
                (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        let words = ["cli-listen", "cli-prompt", "exec", "log", "nodaemon"];
        assert_eq!(closest("cli-lisen", &words), Some("cli-listen"));
        assert_eq!(closest("nodeamon", &words), Some("nodaemon"));
        assert_eq!(closest("exce", &words), Some("exec"));
        assert_eq!(closest("listen", &words), None);
        assert_eq!(closest("x", &words), None);
    }

    #[test]
    fn distances_count_single_slips() {
        for (a, b, wanted) in [("", "ab", 2), ("ab", "ba", 1), ("abc", "adc", 1), ("a", "a", 0)] {
            assert_eq!(distance(a, b), wanted, "{a} {b}");
        }
    }
}
