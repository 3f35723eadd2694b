import Testing

extension Tag {
    /// Needs the wall clock: the suite runs alone.
    @Tag static var realtime: Self
}
