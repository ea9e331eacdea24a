//! Windows in one expression: `Window::of(2).strides(&[2, 2]).same().build()?`.

use crate::{Layout, Padding, Result, Window};

/// A window and what was wrong first; `build` tells.
pub struct WindowBuilder {
    window: Result<Window>,
}

impl Window {
    /// A window of as many spatial axes.
    pub fn of(axes: usize) -> WindowBuilder {
        WindowBuilder { window: Window::create(axes) }
    }
}

impl WindowBuilder {
    fn set(self, change: impl FnOnce(&Window) -> Result<()>) -> WindowBuilder {
        WindowBuilder { window: self.window.and_then(|window| change(&window).map(|()| window)) }
    }

    pub fn kernel(self, sizes: &[i64]) -> WindowBuilder {
        self.set(|window| window.set_kernel(sizes))
    }
    pub fn strides(self, strides: &[i64]) -> WindowBuilder {
        self.set(|window| window.set_strides(strides))
    }
    pub fn dilations(self, dilations: &[i64]) -> WindowBuilder {
        self.set(|window| window.set_dilations(dilations))
    }
    pub fn padding(self, before: &[i64], after: &[i64]) -> WindowBuilder {
        self.set(|window| window.set_padding(before, after))
    }
    pub fn auto_padding(self, padding: Padding) -> WindowBuilder {
        self.set(|window| window.set_auto_padding(padding))
    }
    /// `Padding::SAME_UPPER`.
    pub fn same(self) -> WindowBuilder {
        self.auto_padding(Padding::SAME_UPPER)
    }
    pub fn output_padding(self, more: &[i64]) -> WindowBuilder {
        self.set(|window| window.set_output_padding(more))
    }
    pub fn groups(self, count: i64) -> WindowBuilder {
        self.set(|window| window.set_groups(count))
    }
    pub fn layout(self, layout: Layout) -> WindowBuilder {
        self.set(|window| window.set_layout(layout))
    }
    /// `Layout::CHANNELS_LAST`.
    pub fn channels_last(self) -> WindowBuilder {
        self.layout(Layout::CHANNELS_LAST)
    }
    pub fn flags(self, ceil_mode: bool, count_include_pad: bool) -> WindowBuilder {
        self.set(|window| window.set_flags(ceil_mode, count_include_pad))
    }
    pub fn build(self) -> Result<Window> {
        self.window
    }
}
