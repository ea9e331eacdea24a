//! Dimensions that depend on variables: `(&n + 1)?`, `(&x.dims()?[0] * 2)?`, in the place of sizes.

use crate::{Context, Result, Tensor, Variable};
use std::fmt;
use std::ops::{Add, Div, Mul, Rem, Sub};

/// A size, or one that every run of a program has its own of.  Equal ones are equal for all values of
/// the variables.
#[derive(Clone)]
pub struct Dim {
    context: Context,
    number: i64,
}

impl Dim {
    /// What stands for it where dimensions are taken.
    pub fn number(&self) -> i64 {
        self.number
    }

    /// The lowest and the highest value.
    pub fn range(&self) -> Result<(i64, i64)> {
        self.context.dim_range(self.number)
    }

    pub fn min(&self, other: impl Into<Size>) -> Result<Dim> {
        self.with(self.context.dim_min(self.number, other.into().0))
    }

    pub fn max(&self, other: impl Into<Size>) -> Result<Dim> {
        self.with(self.context.dim_max(self.number, other.into().0))
    }

    fn with(&self, number: Result<i64>) -> Result<Dim> {
        Ok(Dim { context: self.context.clone(), number: number? })
    }
}

/// The right-hand side of an operator: a number or a dimension.
pub struct Size(i64);

impl From<i64> for Size {
    fn from(size: i64) -> Size {
        Size(size)
    }
}

impl From<i32> for Size {
    fn from(size: i32) -> Size {
        Size(size.into())
    }
}

impl From<&Dim> for Size {
    fn from(dim: &Dim) -> Size {
        Size(dim.number)
    }
}

impl PartialEq for Dim {
    fn eq(&self, other: &Dim) -> bool {
        self.number == other.number
    }
}
impl Eq for Dim {}

impl fmt::Display for Dim {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.context.dim_text(self.number).ok().and_then(|report| report.text());
        write!(out, "{}", text.unwrap_or_else(|| self.number.to_string()))
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }
}

impl Variable {
    /// The variable among dimensions.
    pub fn as_dim(&self) -> Result<Dim> {
        Ok(Dim { context: self.context().clone(), number: self.dim()? })
    }
}

impl Tensor {
    /// The shape, to calculate with.
    pub fn dims(&self) -> Result<Vec<Dim>> {
        let context = self.context();
        let sizes = self.shape()?.into_iter();
        Ok(sizes.map(|number| Dim { context: context.clone(), number }).collect())
    }
}

macro_rules! operators {
    ($($kind:ident, $method:ident => $call:ident);*) => {
        $(impl<T: Into<Size>> $kind<T> for &Dim {
            type Output = Result<Dim>;
            fn $method(self, other: T) -> Result<Dim> {
                self.with(self.context.$call(self.number, other.into().0))
            }
        }
        impl<T: Into<Size>> $kind<T> for &Variable {
            type Output = Result<Dim>;
            fn $method(self, other: T) -> Result<Dim> {
                $kind::$method(&self.as_dim()?, other)
            }
        })*
    };
}
// Division rounds down, and what is left is never negative.
operators!(Add, add => dim_add; Sub, sub => dim_sub; Mul, mul => dim_mul; Div, div => dim_floor_div;
           Rem, rem => dim_floor_mod);
