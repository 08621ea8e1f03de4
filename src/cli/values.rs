//! What the values of options are called on the command line. The words of the model stay free of clap.

use clap::ValueEnum;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};

use crate::model::point::{OnConflict, Scope, TurnName};
use crate::model::size;
use crate::model::when::When;
use crate::ui::Colour;

/// Reads a time as typed.
pub(super) fn when() -> impl TypedValueParser<Value = When> {
    StringValueParser::new().try_map(|text| {
        When::parse(&text)
            .ok_or("give a span like `30m`, `12h`, `7d`, `2w`, or a date like `2026-11-01`")
    })
}

/// Reads a size as typed.
pub(super) fn bytes() -> impl TypedValueParser<Value = u64> {
    StringValueParser::new().try_map(|text| {
        size::parse(&text).ok_or("give a number of bytes, or one like `500MB`, `5GB`")
    })
}

/// Reads a turn as typed; what is no number is an id.
pub(super) fn turn_name() -> impl TypedValueParser<Value = TurnName> {
    StringValueParser::new().map(|text| TurnName::parse(&text))
}

impl ValueEnum for Scope {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Code, Self::Conversation, Self::Both]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Code => PossibleValue::new("code").help("The files only"),
            Self::Conversation => PossibleValue::new("conversation").help("The messages only"),
            Self::Both => PossibleValue::new("both").help("Both, or neither"),
        })
    }
}

impl ValueEnum for OnConflict {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Fail, Self::Keep, Self::Overwrite, Self::Beside]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Fail => PossibleValue::new("fail").help("Refuse, and change nothing"),
            Self::Keep => PossibleValue::new("keep").help("Leave the file, do the rest"),
            Self::Overwrite => {
                PossibleValue::new("overwrite").help("Replace it; `undo` brings it back")
            }
            Self::Beside => {
                PossibleValue::new("beside").help("Write the old content to `<name>.rewind`")
            }
        })
    }
}

impl ValueEnum for Colour {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Auto, Self::Always, Self::Never]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        }))
    }
}
