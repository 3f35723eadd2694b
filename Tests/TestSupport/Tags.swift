package import Testing

extension Tag {
    /// Needs the wall clock, threads, sockets, processes or cards, or counts what the process does: the suite runs alone.
    @Tag package static var realtime: Self
    /// Needs a sound card or a sound server.
    @Tag package static var device: Self
    /// Checks a rule of an RFC or an ITU-T recommendation.
    @Tag package static var rfc: Self
}

extension Trait where Self == ConditionTrait {
    /// Computes for half a minute where the compiler does not optimise, and cannot be made shorter.
    package static var isComputing: Self {
        .enabled(if: isOptimised, "computes for too long: Scripts/test address runs it")
    }
}
