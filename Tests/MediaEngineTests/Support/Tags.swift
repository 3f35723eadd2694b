import Testing

extension Tag {
    /// Needs the wall clock.
    @Tag static var realtime: Self
    /// Needs a sound card or a sound server.
    @Tag static var device: Self
    /// Checks a rule of an RFC or an ITU-T recommendation.
    @Tag static var rfc: Self
}
