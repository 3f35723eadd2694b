import Testing

extension Tag {
    /// Needs the wall clock, threads, sockets or processes: the suite runs alone.
    @Tag static var realtime: Self
}
