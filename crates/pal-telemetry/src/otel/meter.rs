//! Cumulative metrics since the start of the program, by instrument and attributes.

use std::collections::BTreeMap;

use super::names::{INSTRUMENTS, MetricInstrument, MetricShape};
use super::wire::{
    Amount, CUMULATIVE, Data, Histogram, KeyValue, Metric, Number, Spread, Sum, Value, attribute,
};

/// Most sets of attributes that one instrument is kept apart by: names come from outside, and memory is not for them.
const SETS_MAX: usize = 500;

/// Value of a metric's attribute.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum MetricLabel {
    /// A word.
    Word(String),
    /// Yes or no.
    YesNo(bool),
}

impl From<&str> for MetricLabel {
    fn from(word: &str) -> MetricLabel {
        MetricLabel::Word(word.to_owned())
    }
}

impl From<bool> for MetricLabel {
    fn from(yes: bool) -> MetricLabel {
        MetricLabel::YesNo(yes)
    }
}

type MetricLabels = Vec<(&'static str, MetricLabel)>;

/// All figures.
#[derive(Debug, Default)]
pub(super) struct MetricMeter {
    figures: BTreeMap<&'static str, BTreeMap<MetricLabels, MetricFigure>>,
    changed: bool,
}

#[derive(Clone, PartialEq, Debug, Default)]
struct MetricFigure {
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    buckets: Vec<u64>,
}

impl MetricMeter {
    /// One figure more.
    pub(super) fn add(
        &mut self,
        instrument: &MetricInstrument,
        amount: f64,
        labels: impl IntoIterator<Item = (&'static str, MetricLabel)>,
    ) {
        let sets = self.figures.entry(instrument.name).or_default();
        let labels: MetricLabels = labels.into_iter().collect();
        if sets.len() >= SETS_MAX && !sets.contains_key(&labels) {
            return;
        }
        let figure = sets.entry(labels).or_default();
        if let MetricShape::Spread(bounds) = instrument.shape {
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

    /// True if something is new since the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Puts back metrics that were taken but did not arrive.
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

fn data(shape: MetricShape, sets: &BTreeMap<MetricLabels, MetricFigure>, start: u64, now: u64) -> Data {
    let number = |(labels, figure): (&MetricLabels, &MetricFigure)| Number {
        start_time_unix_nano: start,
        time_unix_nano: now,
        value: Some(match shape {
            MetricShape::Count => Amount::Whole(figure.sum as i64),
            MetricShape::Total | MetricShape::Spread(_) => Amount::Fraction(figure.sum),
        }),
        attributes: attributes(labels),
    };
    let MetricShape::Spread(bounds) = shape else {
        let data_points = sets.iter().map(number).collect();
        return Data::Sum(Sum { data_points, aggregation_temporality: CUMULATIVE, is_monotonic: true });
    };
    let spread = |(labels, figure): (&MetricLabels, &MetricFigure)| Spread {
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

fn attributes(labels: &MetricLabels) -> Vec<KeyValue> {
    let value = |label: &MetricLabel| match label {
        MetricLabel::Word(word) => Value::Text(word.clone()),
        MetricLabel::YesNo(yes) => Value::YesNo(*yes),
    };
    labels.iter().map(|(key, label)| attribute(key, value(label))).collect()
}
