//! Figures since the start of the program, put together by instrument and attributes.

use std::collections::BTreeMap;

use super::names::{INSTRUMENTS, Instrument, Shape};
use super::wire::{
    Amount, CUMULATIVE, Data, Histogram, KeyValue, Metric, Number, Spread, Sum, Value, attribute,
};

/// Most sets of attributes that one instrument is kept apart by: names come from outside, and memory is not for them.
const SETS_MAX: usize = 500;

/// What an attribute of a figure may be.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Label {
    /// A word.
    Word(String),
    /// Yes or no.
    YesNo(bool),
}

impl From<&str> for Label {
    fn from(word: &str) -> Label {
        Label::Word(word.to_owned())
    }
}

impl From<bool> for Label {
    fn from(yes: bool) -> Label {
        Label::YesNo(yes)
    }
}

type Labels = Vec<(&'static str, Label)>;

/// All figures.
#[derive(Debug, Default)]
pub(super) struct Meter {
    figures: BTreeMap<&'static str, BTreeMap<Labels, Figure>>,
    changed: bool,
}

#[derive(Clone, PartialEq, Debug, Default)]
struct Figure {
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    buckets: Vec<u64>,
}

impl Meter {
    /// One figure more.
    pub(super) fn add(
        &mut self,
        instrument: &Instrument,
        amount: f64,
        labels: impl IntoIterator<Item = (&'static str, Label)>,
    ) {
        let sets = self.figures.entry(instrument.name).or_default();
        let labels: Labels = labels.into_iter().collect();
        if sets.len() >= SETS_MAX && !sets.contains_key(&labels) {
            return;
        }
        let figure = sets.entry(labels).or_default();
        if let Shape::Spread(bounds) = instrument.shape {
            figure.buckets.resize(bounds.len() + 1, 0);
            // The bounds are upper ones and belong to their buckets.
            figure.buckets[bounds.partition_point(|bound| *bound < amount)] += 1;
        }
        (figure.min, figure.max) = match figure.count {
            0 => (amount, amount),
            _ => (figure.min.min(amount), figure.max.max(amount)),
        };
        figure.count += 1;
        figure.sum += amount;
        self.changed = true;
    }

    /// Whether there is anything new since this was asked last.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// What was taken did not arrive.
    pub(super) fn put_back_changed(&mut self) {
        self.changed = true;
    }

    /// Everything, as it is sent.
    pub(super) fn metrics(&self, start: u64, now: u64) -> Vec<Metric> {
        let measured = INSTRUMENTS.iter().filter_map(|instrument| {
            let sets = self.figures.get(instrument.name)?;
            Some(Metric {
                name: instrument.name.to_owned(),
                description: instrument.about.to_owned(),
                unit: instrument.unit.to_owned(),
                data: Some(data(instrument.shape, sets, start, now)),
            })
        });
        measured.collect()
    }
}

fn data(shape: Shape, sets: &BTreeMap<Labels, Figure>, start: u64, now: u64) -> Data {
    let number = |(labels, figure): (&Labels, &Figure)| Number {
        start_time_unix_nano: start,
        time_unix_nano: now,
        value: Some(match shape {
            Shape::Count => Amount::Whole(figure.sum as i64),
            Shape::Total | Shape::Spread(_) => Amount::Fraction(figure.sum),
        }),
        attributes: attributes(labels),
    };
    let Shape::Spread(bounds) = shape else {
        let data_points = sets.iter().map(number).collect();
        return Data::Sum(Sum { data_points, aggregation_temporality: CUMULATIVE, is_monotonic: true });
    };
    let spread = |(labels, figure): (&Labels, &Figure)| Spread {
        start_time_unix_nano: start,
        time_unix_nano: now,
        count: figure.count,
        sum: Some(figure.sum),
        bucket_counts: figure.buckets.clone(),
        explicit_bounds: bounds.to_vec(),
        attributes: attributes(labels),
        min: Some(figure.min),
        max: Some(figure.max),
    };
    let data_points = sets.iter().map(spread).collect();
    Data::Histogram(Histogram { data_points, aggregation_temporality: CUMULATIVE })
}

fn attributes(labels: &Labels) -> Vec<KeyValue> {
    let value = |label: &Label| match label {
        Label::Word(word) => Value::Text(word.clone()),
        Label::YesNo(yes) => Value::YesNo(*yes),
    };
    labels.iter().map(|(key, label)| attribute(key, value(label))).collect()
}
