/// How deep and how many the values of a received message may be.
struct MessageBounds: Sendable {
    let maximumDepth: Int
    let maximumValueCount: Int

    init(_ configuration: MessagingConfiguration) {
        maximumDepth = configuration.maximumDepth
        maximumValueCount = configuration.maximumValueCount
    }
}
