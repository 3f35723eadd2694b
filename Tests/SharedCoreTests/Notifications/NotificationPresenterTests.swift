import Synchronization
import Testing

@testable import SharedCore

/// What notifications say, and how they look on standard output.
@Suite struct NotificationPresenterTests {
    @Test(
        arguments: [
            (["LANG": "fr_CH.UTF-8"], "Vous avez reçu un nouveau message"),
            (["LANG": "fr_CH.UTF-8", "LC_ALL": "de"], "Sie haben eine neue Nachricht erhalten"),
            (["LANG": "it", "LC_MESSAGES": "es@euro", "LC_ALL": ""], "Ha recibido un mensaje nuevo"),
            (["LANG": "C.UTF-8"], "You have received a new message"), ([:], "You have received a new message"),
        ] as [([String: String], String)]
    )
    func `the fallback is in the language of the environment`(environment: [String: String], text: String) {
        #expect(NotificationTexts.localized(environment: environment).fallback == text)
    }

    @Test func `a line tells sender, text, room and repeat, and moves no cursor`() {
        let lines = Mutex<[String]>([])
        let presenter = StandardOutputPresenter { line in lines.withLock { $0.append(line) } }
        let message = IncomingMessage(callID: "1", room: "sip:r@b", sender: "sip:a@b", text: "a\u{1B}[2J\nb\u{9B}c")
        presenter.present(MessageNotification(message, isRepeated: true))
        presenter.present(
            MessageNotification(RoomInvitation(address: "sip:r@b", invitedBy: "sip:a@b"), texts: .english)
        )
        presenter.present(.fallback(identifier: "2", texts: .english))
        #expect(
            lines.withLock(\.self) == [
                "sip:a@b: a [2J b c (sip:r@b) [repeated]\n",
                "sip:a@b: You have been invited to a chat room (sip:r@b)\n",
                "You have received a new message\n",
            ]
        )
    }
}
