//! Estimates the tokens of images by the formulas that providers publish.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{GeneralPurposeConfig, STANDARD};

/// Base64 characters of an inline image that are looked at for its size; a photograph's stands
/// behind its preview.
const HEAD_CHARS_MAX: usize = 512 << 10;

/// Width and height taken for an image that is not in the request, or does not say its size.
pub(super) const SIZE_ASSUMED: (u64, u64) = (1024, 1024);

/// Most patches that an image is cut into.
const PATCHES_MAX: u64 = 1536;

/// Longest edge, in pixels, and pixels a token of Anthropic's models.
const ANTHROPIC: (u64, u64) = (1568, 750);

/// How a family of models counts images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Tokens of an image, and of each of its tiles of 512 × 512.
    Tiles(u64, u64),
    /// Hundredths of a token for each patch of 32 × 32.
    Patches(u64),
}

/// Beginnings of model names, the longer first, and their rules; from gpt-4o-mini's tiles on partly
/// from memory.
const RULES: &[(&str, Rule)] = &[
    ("gpt-4.1-mini", Rule::Patches(162)),
    ("gpt-4.1-nano", Rule::Patches(246)),
    ("gpt-5-mini", Rule::Patches(120)),
    ("o4-mini", Rule::Patches(172)),
    ("gpt-4o-mini", Rule::Tiles(2833, 5667)),
    ("gpt-5", Rule::Tiles(70, 140)),
    ("o1", Rule::Tiles(75, 150)),
    ("o3", Rule::Tiles(75, 150)),
];

/// The rule of gpt-4o and gpt-4.1, and of models that nobody knows.
const DEFAULT: Rule = Rule::Tiles(85, 170);

impl Rule {
    /// The rule of a model, by its name without what stands before it.
    pub(super) fn of(model: &str) -> Self {
        RULES.iter().find(|(start, _)| model.starts_with(start)).map_or(DEFAULT, |(_, rule)| *rule)
    }

    /// Tokens of an image of OpenAI's wire formats.
    pub(super) fn tokens(self, url: &str, detail: Option<&str>) -> u64 {
        let size = size_of_url(url).unwrap_or(SIZE_ASSUMED);
        match self {
            Self::Tiles(base, _) if detail == Some("low") => base,
            Self::Tiles(base, tile) => base + tile * tiles(size),
            Self::Patches(hundredths) => (patches(size) * hundredths).div_ceil(100),
        }
    }
}

/// Tokens of an image of Anthropic's, whose data is base64.
pub(super) fn anthropic(data: Option<&str>) -> u64 {
    let (edge_max, pixels_a_token) = ANTHROPIC;
    let (width, height) = data.and_then(size_of_data).unwrap_or(SIZE_ASSUMED);
    let (width, height) = shrunk((width, height), width.max(height), edge_max);
    (width * height).div_ceil(pixels_a_token)
}

/// Scaled to fit in 2048 × 2048, then to 768 along the shorter side, then cut.
fn tiles((width, height): (u64, u64)) -> u64 {
    let (width, height) = shrunk((width, height), width.max(height), 2048);
    let (width, height) = shrunk((width, height), width.min(height), 768);
    width.div_ceil(512) * height.div_ceil(512)
}

/// Scaled so that whole patches along one side make `PATCHES_MAX` at most, then cut.
fn patches((width, height): (u64, u64)) -> u64 {
    let all = width.div_ceil(32) * height.div_ceil(32);
    if all <= PATCHES_MAX {
        return all;
    }
    // As many along each side as `PATCHES_MAX` squares in the shape of the image have.
    let across = (PATCHES_MAX * width / height).isqrt().max(1);
    let down = (PATCHES_MAX * height / width).isqrt().max(1);
    let scaled = if across * height <= down * width {
        across * (across * height).div_ceil(width)
    } else {
        down * (down * width).div_ceil(height)
    };
    scaled.min(PATCHES_MAX)
}

/// Scaled so that `edge` is `limit` at most.
fn shrunk((width, height): (u64, u64), edge: u64, limit: u64) -> (u64, u64) {
    if edge <= limit {
        return (width, height);
    }
    ((width * limit / edge).max(1), (height * limit / edge).max(1))
}

/// Width and height of `data:image/…;base64,…`.
fn size_of_url(url: &str) -> Option<(u64, u64)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    head.ends_with(";base64").then(|| size_of_data(data))?
}

fn size_of_data(data: &str) -> Option<(u64, u64)> {
    /// Only the head of an image is decoded: it ends anywhere.
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    let head = match data.as_bytes().split_at_checked(HEAD_CHARS_MAX) {
        Some((head, _)) => STANDARD.decode(head),
        None => LENIENT.decode(data),
    };
    let size = imagesize::blob_size(&head.ok()?).ok()?;
    Some((u64::try_from(size.width).ok()?, u64::try_from(size.height).ok()?))
        .filter(|(width, height)| (1..=EDGE_MAX).contains(width) && (1..=EDGE_MAX).contains(height))
}

/// Longest edge that is believed.
const EDGE_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of a PNG is all that says its size.
    fn png(width: u32, height: u32) -> String {
        let mut image = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        image.extend(width.to_be_bytes());
        image.extend(height.to_be_bytes());
        image.extend(*b"\x08\x02\0\0\0\0\0\0\0");
        format!("data:image/png;base64,{}", STANDARD.encode(image))
    }

    fn tokens(model: &str, url: &str, detail: Option<&str>) -> u64 {
        super::super::model::Model::new(model).images.tokens(url, detail)
    }

    #[test]
    fn tiles_follow_the_published_examples() {
        assert_eq!(tokens("gpt-4o", &png(1024, 1024), None), 765);
        assert_eq!(tokens("gpt-4o", &png(2048, 4096), Some("high")), 1105);
        assert_eq!(tokens("gpt-4o", &png(4096, 8192), Some("low")), 85);
        assert_eq!(tokens("gpt-4o-mini", &png(512, 512), None), 2833 + 5667);
        assert_eq!(tokens("openai/gpt-5.4", &png(1, 1), None), 210);
    }

    #[test]
    fn patches_follow_the_published_examples() {
        assert_eq!(patches((1024, 1024)), 1024);
        assert_eq!(patches((1800, 2400)), 1452);
        assert_eq!(patches((2400, 1800)), 1452);
    }

    #[test]
    fn patches_are_multiplied() {
        assert_eq!(tokens("gpt-4.1-mini", &png(1024, 1024), None), 1659);
        assert_eq!(tokens("gpt-4.1-nano-2025-04-14", &png(32, 33), Some("low")), 5);
        assert_eq!(tokens("o4-mini", &png(1800, 2400), None), 2498);
    }

    #[test]
    fn patches_of_any_shape_have_a_most() {
        let edges = [1, 31, 32, 33, 1000, 1248, 1249, 5000, 65_536, EDGE_MAX];
        for (width, height) in edges.into_iter().flat_map(|w| edges.map(|h| (w, h))) {
            let patches = patches((width, height));
            assert!((1..=PATCHES_MAX).contains(&patches), "{width} × {height}: {patches}");
        }
        assert_eq!(patches((1, EDGE_MAX)), PATCHES_MAX);
    }

    #[test]
    fn sizes_are_read_from_each_kind_of_image() {
        let jpeg = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\
            \xff\xc0\0\x11\x08\0\x20\0\x40\x03\x01\x22\0\x02\x11\x01\x03\x11\x01";
        let gif = b"GIF89a\x40\0\x20\0\x80\0\0";
        let webp =
            b"RIFF\x24\0\0\0WEBPVP8 \x18\0\0\0\x30\x01\0\x9d\x01\x2a\x40\0\x20\0\0\0\0\0\0\0\0\0";
        for image in [jpeg.as_slice(), gif, webp] {
            assert_eq!(size_of_data(&STANDARD.encode(image)), Some((64, 32)));
        }
        assert_eq!(size_of_url(&png(64, 32)), Some((64, 32)));
    }

    #[test]
    fn an_image_of_unknown_size_is_taken_for_the_assumed_one() {
        let assumed = tokens("gpt-4o", &png(1024, 1024), None);
        for url in ["https://example.com/a.png", "data:image/png;base64,AAAA", "data:", &png(0, 9)]
        {
            assert_eq!(tokens("gpt-4o", url, None), assumed, "{url}");
        }
        assert_eq!(anthropic(None), 1399);
    }

    #[test]
    fn anthropic_counts_by_area() {
        let (_, data) =
            png(1092, 1092).split_once(',').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        assert_eq!(anthropic(Some(&data)), 1590);
    }
}
