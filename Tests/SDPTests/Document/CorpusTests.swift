import Testing

@testable import SDP

/// Descriptions of others, read where they stand; without the corpora the suite shows as skipped.
@Suite(.enabled(if: CorpusFiles.areThere, "the corpora are not on this machine"))
struct CorpusTests {
    static let folders: [(String, Int)] = [
        ("fetched/webrtc-sdp", 30), ("fetched/sdp-transform", 15), ("fetched/sofia-sdp", 7), ("fetched/pjsip-fuzz", 4),
        ("own/captures", 30),
    ]

    @Test(arguments: folders) func `every line of the corpora is written as it was read`(folder: String, atLeast: Int)
        throws
    {
        let files = try CorpusFiles.descriptions(in: folder)
        #expect(files.count >= atLeast)
        for (name, bytes) in files {
            let expected = bytes.split { $0 == 0x0A || $0 == 0x0D }.filter {
                $0.count >= 2 && $0[$0.startIndex + 1] == 0x3D
            }
            guard !expected.isEmpty else { continue }
            let written = try SessionDescription(parsing: bytes).bytes
            #expect(written == Array(expected.map { $0 + [0x0D, 0x0A] }.joined()), "\(name)")
            #expect(try SessionDescription(parsing: written).bytes == written, "\(name)")
        }
    }

    @Test func `every description of the captures is an offer that can be answered`() throws {
        for (name, bytes) in try CorpusFiles.descriptions(in: "own/captures") {
            var session = OfferAnswer(.audio { $0.protocols = [.rtpAVP, .rtpSAVP] })
            let offer = try SessionDescription(parsing: bytes)
            try session.receiveOffer(offer)
            let answer = try session.makeAnswer()
            #expect(answer.media.count == offer.media.count, "\(name)")
            #expect(session.agreed?.audio?.sending.codecs.first != nil, "\(name)")
        }
    }
}
