package import Testing

extension Tag {
    /// Needs the wall clock.
    @Tag package static var realtime: Self
    /// Needs a sound card or a sound server.
    @Tag package static var device: Self
    /// Checks a rule of an RFC or an ITU-T recommendation.
    @Tag package static var rfc: Self
}
