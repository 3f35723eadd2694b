@testable import MediaEngine

/// Two legs over a perfect network in virtual time; what the callee hears is collected.
final class CallPair {
    let engine: CallEngine
    let caller: Call
    let callee: Call
    let heard: CallCollector

    /// A caller that says `source`, and a callee, in a new engine unless one is given; `configure` changes what they are
    /// made of.
    init(
        saying source: CallSource,
        codec: AgreedCodec = "PCMU",
        engine given: CallEngine? = nil,
        configure: (_ calling: inout CallConfiguration, _ called: inout CallConfiguration) -> Void = { _, _ in }
    ) async throws {
        engine = try given ?? CallEngine(.virtual())
        let (left, right) = MemoryLink.pair()
        let format = try engine.registry.codec(named: codec.name).description.format
        var calling = CallConfiguration(network: .link(left, local: left.localAddress))
        calling.name = "A"
        calling.agreement.remote = right.localAddress
        calling.agreement.codec = codec
        calling.source = source
        calling.sink = .none
        var called = CallConfiguration(network: .link(right, local: right.localAddress))
        called.name = "B"
        called.agreement.remote = left.localAddress
        called.agreement.codec = codec
        called.source = .silence
        heard = CallCollector()
        called.sink = .filter(heard.filter(format))
        configure(&calling, &called)
        let calls = try await engine.makeCalls([calling, called])
        (caller, callee) = (calls[0], calls[1])
    }

    func advance(_ milliseconds: Int64) throws { try engine.advance(by: .milliseconds(milliseconds)) }
}
