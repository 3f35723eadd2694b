// Codecs of one's own, registered at init: L8 in Swift, and DVI4 in C (Examples/CExamplePlugin), then a call with each.
import CExamplePlugin
import Foundation
import MediaEngine

/// L8: one unsigned byte for each sample (RFC 3551, section 4.5.10), here at 16000 Hz.
struct L8Codec: AudioCodec {
    let description = CodecDescription(name: "L8", clockRate: 16000, format: AudioFormat(sampleRate: 16000))

    func makeEncoder(_ configuration: EncoderConfiguration) throws(CodecError) -> any AudioEncoder {
        guard configuration.channelCount == 1 else {
            throw CodecError(.unsupportedConfiguration, "L8 here is mono. Ask for one channel.")
        }
        let ptime = configuration.ptime ?? description.defaultPtime
        return L8Encoder(format: description.format, frameCount: description.format.frameCount(in: ptime))
    }

    // The engine fills gaps for a decoder that cannot: wrapped so, the payload decoder need know nothing of loss.
    func makeDecoder(channelCount: Int) throws(CodecError) -> any AudioDecoder {
        guard channelCount == 1 else {
            throw CodecError(.unsupportedConfiguration, "L8 here is mono. Ask for one channel.")
        }
        return ConcealingDecoder(L8PayloadDecoder(format: description.format))
    }
}

// From here on the media thread calls: no allocation, no lock, no waiting.
final class L8Encoder: AudioEncoder {
    let format: AudioFormat
    let frameCount: Int

    init(format: AudioFormat, frameCount: Int) {
        self.format = format
        self.frameCount = frameCount
    }

    func encode(_ samples: Span<Int16>, into payload: inout MutableSpan<UInt8>) -> Int {
        guard samples.count == frameCount, payload.count >= frameCount else { return 0 }
        for index in 0..<frameCount {
            payload[index] = UInt8(truncatingIfNeeded: (Int32(samples[index]) &+ 32768) &>> 8)
        }
        return frameCount
    }
}

struct L8PayloadDecoder: PayloadDecoder {
    let format: AudioFormat

    func frameCount(of payload: Span<UInt8>) -> Int { payload.count }

    func decode(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
        for index in 0..<payload.count {
            samples[index] = Int16(truncatingIfNeeded: (Int32(payload[index]) &- 128) &<< 8)
        }
        return payload.count
    }

    func reset() {}
}

/// A plugin is a name, and what it registers whenever the registry is built.
struct L8Plugin: MediaPlugin {
    let name = "l8"

    func register(in registry: inout PluginRegistry) { registry.add(L8Codec()) }
}

var configuration = CallEngineConfiguration.virtual()
configuration.registry.load(L8Plugin())
configuration.registry.load("libmsexample", libmsexample_init)

for plugin in configuration.registry.plugins where ["l8", "libmsexample"].contains(plugin.name) {
    print("\(plugin.name): \(plugin.summary)")
}

for name in ["L8", "DVI4"] {
    let engine = try CallEngine(configuration)
    let (left, right) = MemoryLink.pair()
    let format = AudioFormat(sampleRate: 16000)
    var calling = CallConfiguration(network: .link(left, local: left.localAddress))
    calling.agreement.remote = right.localAddress
    calling.agreement.codec = AgreedCodec(name)
    calling.source = .samples(TestSignal.samples(2, format), format)
    calling.sink = .none
    var answering = calling
    answering.network = .link(right, local: right.localAddress)
    answering.agreement.remote = left.localAddress
    let calls = try await engine.makeCalls([calling, answering])
    try engine.advance(by: .milliseconds(1300))
    let heard = calls[1].report(hearing: calls[0])
    print("\(name): \(heard.received.packets) packets, \(heard.received.lost) lost, heard at \(heard.heardLevel) dBov")
    guard heard.received.packets > 60, heard.received.lost == 0, heard.heardLevel > -30 else { exit(1) }
    await engine.shutDown()
}
