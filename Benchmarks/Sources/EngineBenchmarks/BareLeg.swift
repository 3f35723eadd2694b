@testable import MediaEngine
@testable import RTP

/// One leg without an engine, so that its ticks can be run one by one.
enum BareLeg {
    /// Adds a leg of codec `name` to `graph`.
    ///
    /// - Parameters:
    ///   - name: The codec.
    ///   - stream: What is asked of it.
    ///   - link: Its network.
    ///   - addresses: Its own address, and the other side's.
    ///   - seed: Draws SSRC and the like.
    ///   - graph: Where its filters go.
    ///   - source: What it says.
    /// - Throws: `CodecError` or `GraphError`.
    static func add(
        _ name: String,
        _ stream: AudioStreamConfiguration,
        over link: any DatagramLink,
        addresses: (local: SocketAddress, remote: SocketAddress),
        seed: UInt64,
        to graph: inout Graph,
        source: Filter
    ) throws {
        var agreement = MediaAgreement()
        agreement.codec = AgreedCodec(name)
        agreement.remote = addresses.remote
        let formats = try AgreedFormats(agreement, in: PluginRegistry.standard())
        var rules = RTPSessionConfiguration(canonicalName: "benchmark")
        rules.addresses.destination = addresses.remote
        rules.addresses.controlDestination = addresses.remote
        rules.addresses.isMultiplexed = true
        let leg = RTPLeg(
            session: RTPSession(configuration: rules, payloads: formats.payloads, seed: seed),
            port: RTPPort(link: link, localAddress: addresses.local)
        )
        let chain = try AudioStream(agreement, formats, stream, over: leg)
        try chain.linkReceiving(in: &graph)
        try chain.linkSending(in: &graph, source: source)
    }
}
