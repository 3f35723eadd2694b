import Foundation
import SharedCore
import Testing

/// The values that pass between a core and its service.
@Suite struct CoreServiceTests {
    @Test(
        arguments: [
            (
                MessageAction(id: "7", callID: "1", kind: .reply("yes")),
                #"{"callID":"1","id":"7","kind":"reply","text":"yes"}"#
            ),
            (MessageAction(id: "8", callID: "1", kind: .markAsSeen), #"{"callID":"1","id":"8","kind":"markAsSeen"}"#),
        ]
    )
    func `an action is written as documented and read back`(action: MessageAction, text: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        #expect(String(decoding: try encoder.encode(action), as: UTF8.self) == text)
        #expect(try JSONDecoder().decode(MessageAction.self, from: Data(text.utf8)) == action)
    }

    @Test(arguments: [#"{"id":"7","callID":"1","kind":"reply"}"#, #"{"id":"7","callID":"1","kind":"delete"}"#])
    func `an action of another kind or without its text is an error`(text: String) {
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(MessageAction.self, from: Data(text.utf8)) }
    }
}
