//! Values: numbers, sizes, core lists.

use std::fmt;

/// Highest core number in a configuration: the maximum that a Linux kernel can be built for, less
/// one.
pub const MAX_CORE: u16 = 8191;
/// Maximum number of workers.
pub const MAX_WORKERS: usize = 255;

/// Processor cores in ascending order, written `1-3,5`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreList(Vec<u16>);

impl CoreList {
    /// Returns the cores.
    pub fn cores(&self) -> &[u16] {
        &self.0
    }

    /// Returns their number.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if `core` is among them.
    pub fn contains(&self, core: u16) -> bool {
        self.0.binary_search(&core).is_ok()
    }

    /// Parses numbers and ranges separated by commas.
    ///
    /// # Errors
    /// A sentence that describes the error in the list.
    pub fn parse(text: &str) -> Result<CoreList, String> {
        let mut cores = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (core(first, text)?, core(last, text)?);
            if first > last {
                return Err(format!("range {part} of core list {text} runs backwards"));
            }
            cores.extend(first..=last);
            // A list that repeats long ranges must not take memory without limit.
            if cores.len() > 2 * usize::from(MAX_CORE) {
                break;
            }
        }
        CoreList::from_cores(cores, text)
    }

    /// Parses a hexadecimal mask, of which bit n selects core n.
    ///
    /// # Errors
    /// A sentence that describes the error in the mask.
    pub fn parse_mask(text: &str) -> Result<CoreList, String> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let mut cores = Vec::new();
        for (position, digit) in digits.chars().rev().enumerate() {
            let Some(bits) = digit.to_digit(16) else {
                return Err(format!("core mask {text} is not a hexadecimal number"));
            };
            for bit in (0..4).filter(|bit| bits & (1 << bit) != 0) {
                let core = u16::try_from(position * 4 + bit).ok().filter(|core| *core <= MAX_CORE);
                cores.push(
                    core.ok_or_else(|| format!("core mask {text} names a core above {MAX_CORE}"))?,
                );
            }
        }
        CoreList::from_cores(cores, text)
    }

    fn from_cores(mut cores: Vec<u16>, text: &str) -> Result<CoreList, String> {
        cores.sort_unstable();
        if let Some(pair) = cores.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("core {} is listed twice in {text}", pair[0]));
        }
        Ok(CoreList(cores))
    }
}

impl fmt::Display for CoreList {
    /// Formats as `1-3,5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a.checked_add(1) == Some(*b));
        for (number, run) in runs.enumerate() {
            if number > 0 {
                f.write_str(",")?;
            }
            match run {
                [first, .., last] => write!(f, "{first}-{last}")?,
                _ => write!(f, "{}", run[0])?,
            }
        }
        Ok(())
    }
}

fn core(digits: &str, list: &str) -> Result<u16, String> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "{list} is not a core list; write core numbers and ranges such as 1-3,5"
        ));
    }
    match digits.parse() {
        Ok(core) if core <= MAX_CORE => Ok(core),
        _ => Err(format!("core {digits} is out of range; cores go from 0 to {MAX_CORE}")),
    }
}

/// Reads a number of bytes such as `4096`, `64k`, `2M`, `1g` or `0x1000`; units are powers of 1024.
///
/// ```
/// assert_eq!(thalweg_config::parse_size("2m"), Some(2 << 20));
/// assert_eq!(thalweg_config::parse_size("2x"), None);
/// ```
pub fn parse_size(text: &str) -> Option<u64> {
    let unit_at = text.len().checked_sub(1).filter(|at| text.is_char_boundary(*at))?;
    let shift = match text.as_bytes()[unit_at].to_ascii_lowercase() {
        b'k' => 10,
        b'm' => 20,
        b'g' => 30,
        b't' => 40,
        _ => return parse_number(text),
    };
    parse_number(&text[..unit_at])?.checked_mul(1 << shift)
}

/// Reads a decimal number, or a hexadecimal one after `0x`.
pub(super) fn parse_number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // The standard library would accept a sign.
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn core_lists_are_read_and_written() {
        let list = CoreList::parse("5,1-3,8").unwrap();
        assert_eq!(list.cores(), [1, 2, 3, 5, 8]);
        assert_eq!(list.to_string(), "1-3,5,8");
        assert_eq!((list.len(), list.contains(5), list.contains(4)), (5, true, false));
        assert_eq!(CoreList::parse("0-1").unwrap().to_string(), "0-1");
    }

    #[test]
    fn bad_core_lists_are_explained() {
        for (text, part) in [
            ("", "is not a core list"),
            ("1,", "is not a core list"),
            ("1-2-3", "is not a core list"),
            ("+1", "is not a core list"),
            ("a", "is not a core list"),
            ("3-1", "runs backwards"),
            ("1,1", "listed twice"),
            ("1-3,2", "listed twice"),
            ("8192", "out of range"),
            ("99999999", "out of range"),
        ] {
            let error = CoreList::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn masks_are_read() {
        assert_eq!(CoreList::parse_mask("0x15").unwrap().cores(), [0, 2, 4]);
        assert_eq!(CoreList::parse_mask("f0").unwrap().to_string(), "4-7");
        assert!(CoreList::parse_mask("0xg").is_err());
        assert!(CoreList::parse_mask(&format!("1{}", "0".repeat(4000))).is_err());
    }

    #[test]
    fn sizes_are_read() {
        for (text, size) in [
            ("0", Some(0)),
            ("4096", Some(4096)),
            ("64K", Some(64 << 10)),
            ("2m", Some(2 << 20)),
            ("1G", Some(1 << 30)),
            ("1t", Some(1 << 40)),
            ("0x1000", Some(4096)),
            ("", None),
            ("k", None),
            ("+1", None),
            ("-1", None),
            ("0x", None),
            ("1kk", None),
            ("1é", None),
            ("99999999999999999999", None),
            ("99999999999t", None),
        ] {
            assert_eq!(parse_size(text), size, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC*") {
            let _ = parse_size(&text);
            let _ = CoreList::parse(&text);
            let _ = CoreList::parse_mask(&text);
        }

        #[test]
        fn lists_survive_writing(cores in proptest::collection::btree_set(0..=MAX_CORE, 1..40)) {
            let cores: Vec<u16> = cores.into_iter().collect();
            let list = CoreList(cores.clone());
            let read = CoreList::parse(&list.to_string()).unwrap();
            prop_assert_eq!(read.cores(), &cores[..]);
        }
    }
}
