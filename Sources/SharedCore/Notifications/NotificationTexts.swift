/// The words that notifications need, in a language.
public struct NotificationTexts: Sendable, Hashable {
    /// What is shown when a message did not come in time.
    public var fallback: String
    /// What is shown for an invitation without a subject.
    public var invitation: String
    /// The label of the action that answers.
    public var reply: String
    /// The label of the action that tells the sender.
    public var markAsSeen: String
    /// What is shown of a call that rings, and of one that is on.
    public var incomingCall = "Incoming call", call = "Call"
    /// The labels of the actions that answer, decline and end a call.
    public var answer = "Answer", decline = "Decline", hangUp = "Hang up"

    /// Words of your own.
    public init(fallback: String, invitation: String, reply: String, markAsSeen: String) {
        self.fallback = fallback
        self.invitation = invitation
        self.reply = reply
        self.markAsSeen = markAsSeen
    }

    /// The words in the language that `LC_ALL`, `LC_MESSAGES` or `LANG` names, in this order; else in English.
    ///
    /// Source: POSIX.1-2017, Base Definitions, 8.2 "Internationalization Variables".
    public static func localized(environment: [String: String]) -> NotificationTexts {
        let name = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
        let language = name.prefix { $0 != "_" && $0 != "." && $0 != "@" }
        return languages[language.lowercased()] ?? english
    }

    /// The words in English.
    public static let english = NotificationTexts(
        fallback: "You have received a new message",
        invitation: "You have been invited to a chat room",
        reply: "Reply",
        markAsSeen: "Mark as seen"
    )

    private static let languages: [String: NotificationTexts] = [
        "en": english,
        "de": NotificationTexts(
            fallback: "Sie haben eine neue Nachricht erhalten",
            invitation: "Sie wurden in einen Chatraum eingeladen",
            reply: "Antworten",
            markAsSeen: "Als gelesen markieren"
        ).withCalls("Eingehender Anruf", "Anruf", "Annehmen", "Ablehnen", "Auflegen"),
        "es": NotificationTexts(
            fallback: "Ha recibido un mensaje nuevo",
            invitation: "Le han invitado a una sala de chat",
            reply: "Responder",
            markAsSeen: "Marcar como visto"
        ).withCalls("Llamada entrante", "Llamada", "Contestar", "Rechazar", "Colgar"),
        "fr": NotificationTexts(
            fallback: "Vous avez reçu un nouveau message",
            invitation: "Vous avez été invité dans un salon de discussion",
            reply: "Répondre",
            markAsSeen: "Marquer comme vu"
        ).withCalls("Appel entrant", "Appel", "Répondre", "Refuser", "Raccrocher"),
        "it": NotificationTexts(
            fallback: "Hai ricevuto un nuovo messaggio",
            invitation: "Sei stato invitato in una chat",
            reply: "Rispondi",
            markAsSeen: "Segna come visto"
        ).withCalls("Chiamata in arrivo", "Chiamata", "Rispondi", "Rifiuta", "Riaggancia"),
        "pt": NotificationTexts(
            fallback: "Recebeu uma nova mensagem",
            invitation: "Foi convidado para uma sala de conversa",
            reply: "Responder",
            markAsSeen: "Marcar como visto"
        ).withCalls("Chamada recebida", "Chamada", "Atender", "Recusar", "Desligar"),
    ]

    private func withCalls(_ incoming: String, _ call: String, _ answer: String, _ decline: String, _ hangUp: String)
        -> NotificationTexts
    {
        var texts = self
        (texts.incomingCall, texts.call) = (incoming, call)
        (texts.answer, texts.decline, texts.hangUp) = (answer, decline, hangUp)
        return texts
    }
}
